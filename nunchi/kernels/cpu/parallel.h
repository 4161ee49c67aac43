// Splits work among a context's threads: OpenMP's, which the product library uses too.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "nunchi/device/context.h"

namespace nunchi::kernels {
namespace {

// f(begin, end) over contiguous parts of [0, count), each at least `grain` long.
template <class F>
void parallel_ranges(const CpuContext& ctx, std::int64_t count, std::int64_t grain, F&& f) {
  const std::int64_t most = (count + grain - 1) / grain;
  const int parts = static_cast<int>(most < ctx.threads() ? most : ctx.threads());
  if (parts <= 1) {
    if (count > 0) f(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(parts)
  {
    const std::int64_t part = omp_get_thread_num(), all = omp_get_num_threads();
    const std::int64_t begin = count * part / all, end = count * (part + 1) / all;
    if (begin < end) f(begin, end);
  }
}

// f(task, thread) for each task of [0, count), handed out as threads become free.
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
