// Splits work among a context's threads. They are OpenMP threads, which the matrix product
// library uses too.
//
// Small work runs on the calling thread alone: waking the others and waiting for them costs some
// microseconds. If other processes use the cores, threads wait for each other for as long as these
// run, milliseconds, and only work that takes at least as long is split. Kernels give the same bits
// either way.
//
// Other work runs on all threads of the context, even if some have nothing to do: libgomp ends the
// threads that a smaller team does not need and creates them again for the next larger one.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "nunchi/device/context.h"

namespace nunchi::kernels {
namespace {

// The time, on one thread, from which on work is split among threads, on quiet and on busy cores.
constexpr double kMinParallelNanoseconds = 4e3, kMinBusyNanoseconds = 1e6;

// Whether work that takes one thread `nanoseconds` is large enough to be split on quiet cores.
inline bool is_large(const CpuContext& ctx, double nanoseconds) {
  return nanoseconds >= kMinParallelNanoseconds || ctx.splits_small_work();
}

// The same on the cores as they are now. Only for work whose bits do not depend on it.
inline bool is_large_now(const CpuContext& ctx, double nanoseconds) {
  if (!is_large(ctx, nanoseconds)) return false;
  ctx.busy_cores().poll();
  return !ctx.busy_cores().detected() || nanoseconds >= kMinBusyNanoseconds ||
         ctx.splits_small_work();
}

// Rows of `width` elements that are worth a thread: see parallel_ranges().
inline std::int64_t row_grain(std::int64_t width) {
  constexpr std::int64_t kElements = 8192;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, width));
}

// Calls f(begin, end) for contiguous ranges that cover [0, count). There are at most
// ceil(count / grain) ranges; a grain takes one thread about kMinParallelNanoseconds.
template <class F>
void parallel_ranges(const CpuContext& ctx, std::int64_t count, std::int64_t grain, F&& f) {
  if (ctx.splits_small_work()) grain = 1;
  const std::int64_t parts = std::min<std::int64_t>((count + grain - 1) / grain, ctx.threads());
  const double grains = static_cast<double>(count) / static_cast<double>(grain);
  if (parts <= 1 || !is_large_now(ctx, grains * kMinParallelNanoseconds)) {
    if (count > 0) f(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(ctx.threads())
  {
    const std::int64_t thread = omp_get_thread_num(),
                       threads = std::min<std::int64_t>(parts, omp_get_num_threads());
    const std::int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    if (thread < threads && begin < end) f(begin, end);
  }
}

// Calls f(task, thread) for each task in [0, count). Free threads take the next task. A task takes
// one thread `nanoseconds`, approximately.
template <class F>
void parallel_tasks(const CpuContext& ctx, std::int64_t count, double nanoseconds, F&& f) {
  if (count <= 1 || ctx.threads() <= 1 ||
      !is_large_now(ctx, static_cast<double>(count) * nanoseconds)) {
    for (std::int64_t task = 0; task < count; ++task) f(task, 0);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(ctx.threads())
  for (std::int64_t task = 0; task < count; ++task) f(task, omp_get_thread_num());
}

}  // namespace
}  // namespace nunchi::kernels
