// What this machine can do at best, measured: the limit that other figures stand beside.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "nunchi/device/context.h"

namespace nunchi::benchmark {

struct Limits {
  double product_gflops = 0;  // f32 products with a packed weight
  double memory_gbps = 0;     // reading and writing memory
};

// In memory of its own, which is given back. Takes about a second.
Limits measure_limits(int threads);

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// The times of `repeats` runs of f; one run before them does not count.
template <class F>
std::vector<double> timed(int repeats, F&& f) {
  f();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const double begin = seconds_now();
    f();
    seconds.push_back(seconds_now() - begin);
  }
  return seconds;
}

}  // namespace nunchi::benchmark
