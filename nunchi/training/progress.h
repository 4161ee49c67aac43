// How far a run has come, how fast it is and how long it will take.
#pragma once

#include <chrono>
#include <cstdint>

#include "nunchi/training/config/train_config.h"

namespace nunchi {

struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;  // 0: unknown
  std::int64_t epoch = 0;        // from 0
  double loss = 0;               // per target token, since the last line of the log
  double learning_rate = 0;
  double gradient_norm = 0;
  double target_tokens_per_second = 0;  // including the wait for data
  double seconds_left = 0;              // below zero: unknown
};

// The steps that a run takes until max_steps or max_epochs ends it; 0: neither does. Exact if every
// epoch has `epoch_batches` micro-batches; they may differ a little.
std::int64_t total_steps(const TrainingOptions& limits, std::int64_t epoch_batches);

// The clock of a run, which may have begun in an earlier process.
class RunClock {
 public:
  RunClock() = default;
  // The run has taken `steps` steps in `seconds` seconds already.
  RunClock(std::int64_t steps, double seconds) : steps_before_(steps), seconds_before_(seconds) {}

  void start();
  // Seconds of the run, those of earlier processes included.
  double elapsed() const;

  // Speed is measured over a window of steps, from one line of the log to the next.
  void begin_window();
  void add_tokens(std::int64_t tokens) { window_tokens_ += tokens; }
  double tokens_per_second() const;
  // Time since `began` that was not spent on steps.
  void leave_out_since(std::chrono::steady_clock::time_point began);

  // Below zero: unknown. `step` is the number of steps taken, of `total`, 0 for unknown.
  double seconds_left(std::int64_t step, std::int64_t total, double max_minutes) const;

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point from);

  std::int64_t steps_before_ = 0;
  double seconds_before_ = 0;
  Clock::time_point began_, window_began_;
  std::int64_t window_tokens_ = 0;
};

}  // namespace nunchi
