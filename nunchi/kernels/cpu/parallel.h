// Splits work among a context's threads. They are OpenMP threads, which the matrix product
// library uses too.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "nunchi/device/context.h"

namespace nunchi::kernels {
namespace {

// Calls f(begin, end) for contiguous ranges that cover [0, count). There are at most
// ceil(count / grain) ranges.
template <class F>
void parallel_ranges(const CpuContext& ctx, std::int64_t count, std::int64_t grain, F&& f) {
  const std::int64_t max_parts = (count + grain - 1) / grain;
  const int parts = static_cast<int>(max_parts < ctx.threads() ? max_parts : ctx.threads());
  if (parts <= 1) {
    if (count > 0) f(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(parts)
  {
    const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const std::int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    if (begin < end) f(begin, end);
  }
}

// Calls f(task, thread) for each task in [0, count). Free threads take the next task.
template <class F>
void parallel_tasks(const CpuContext& ctx, std::int64_t count, F&& f) {
  const int threads = static_cast<int>(count < ctx.threads() ? count : ctx.threads());
  if (threads <= 1) {
    for (std::int64_t task = 0; task < count; ++task) f(task, 0);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t task = 0; task < count; ++task) f(task, omp_get_thread_num());
}

}  // namespace
}  // namespace nunchi::kernels
