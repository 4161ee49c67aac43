// The speed of whole training steps with fixed shapes: dropout, label smoothing, backward pass,
// gradient clipping, Adam.
#pragma once

#include <functional>
#include <string>

#include "nunchi/benchmark/limits.h"
#include "nunchi/models/family.h"

namespace nunchi::benchmark {

struct TrainBenchOptions {
  ModelConfig model;  // trained for its family's default objective
  std::int64_t vocabulary = 32000;
  std::int64_t sentences = 128;
  std::int64_t length = 32;  // tokens of each sentence, on each side
  int warmup = 2;
  int steps = 8;       // maximum number of timed steps
  double seconds = 0;  // stop after this many seconds of timed steps; 0: no limit
  bool profile = false;
};

struct TrainBenchStep {
  int step = 0;  // from 1; warm-up steps are 0 and below
  double seconds = 0;
  double timed_seconds = 0;  // sum over all timed steps so far
  double loss = 0;           // per target token
};

struct TrainBenchResult {
  std::int64_t parameters = 0;
  std::int64_t target_tokens = 0;  // per step; for masked texts, all tokens
  int steps = 0;
  double median_seconds_per_step = 0;
  double mean_seconds_per_step = 0;  // matches the sum of the profile
  double flops_per_step = 0;         // matrix products and attention only
  double first_loss = 0, last_loss = 0;
  double arena_mib = 0;
  Profile profile;  // covers all timed steps; empty unless requested
};

// Calls `progress` after each step, warm-up included.
TrainBenchResult measure_training(ContextBase& context, const TrainBenchOptions& options,
                                  const std::function<void(const TrainBenchStep&)>& progress);

}  // namespace nunchi::benchmark
