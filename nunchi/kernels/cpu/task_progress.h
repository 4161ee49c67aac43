// Reports how much of a long kernel is done (device/work_progress.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "nunchi/device/context.h"
#include "nunchi/device/work_progress.h"

namespace nunchi::kernels {
namespace {

// Counts the finished tasks of a kernel over many rows; over fewer rows it does nothing.
class TaskProgress {
 public:
  TaskProgress(CpuContext& ctx, std::int64_t rows, std::int64_t tasks)
      : progress_(WorkProgress::for_rows(ctx, rows)), tasks_(tasks) {}

  // May be called by several threads.
  void add_task() {
    if (progress_ == nullptr) return;
    const std::int64_t done = done_.fetch_add(1, std::memory_order_relaxed) + 1;
    progress_->set_part(static_cast<double>(done) / static_cast<double>(tasks_));
  }

 private:
  WorkProgress* progress_;
  std::int64_t tasks_;
  std::atomic<std::int64_t> done_ = 0;
};

}  // namespace
}  // namespace nunchi::kernels
