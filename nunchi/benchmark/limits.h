// Measured limits of the machine, to compare other measurements with.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "nunchi/device/make_context.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi::benchmark {

struct Limits {
  double product_gflops = 0;  // matrix products in the context's precision, with packed weights
  double memory_gbps = 0;     // reading and writing memory
};

// Creates its own context. Takes about a second.
Limits measure_limits(const ContextOptions& options);

// Random numbers in [-1, 1), in the context's precision.
Tensor random_tensor(ContextBase& context, const Shape& shape);

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// The seconds that each of `repeats` runs of f takes on the context, after one untimed run.
template <class F>
std::vector<double> timed(ContextBase& context, int repeats, F&& f) {
  f();
  context.synchronize();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const double begin = seconds_now();
    f();
    context.synchronize();
    seconds.push_back(seconds_now() - begin);
  }
  return seconds;
}

}  // namespace nunchi::benchmark
