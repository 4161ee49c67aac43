// The speed and memory of attention over one long sequence.
#pragma once

#include "nunchi/benchmark/limits.h"

namespace nunchi::benchmark {

struct AttentionBenchOptions {
  std::int64_t length = 16384;
  int heads = 8;
  std::int64_t width = 64;  // width of each head
  bool causal = false;
  int repeats = 3;
};

struct AttentionBenchResult {
  double forward_ms = 0, backward_ms = 0;
  double forward_gflops = 0, backward_gflops = 0;
  double arena_mib = 0;  // peak of the arena, inputs and gradients included
};

AttentionBenchResult measure_attention(ContextBase& context, const AttentionBenchOptions& options);

}  // namespace nunchi::benchmark
