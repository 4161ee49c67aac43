#include "nunchi/training/progress.h"

#include <algorithm>

namespace nunchi {

std::int64_t total_steps(const TrainingOptions& limits, std::int64_t epoch_batches) {
  if (limits.max_epochs == 0) return limits.max_steps;
  const std::int64_t batches = limits.max_epochs * epoch_batches;
  const std::int64_t steps = (batches + limits.accumulate - 1) / limits.accumulate;
  return limits.max_steps > 0 ? std::min(limits.max_steps, steps) : steps;
}

double RunClock::seconds_since(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

void RunClock::start() {
  start_time_ = Clock::now();
  start_window();
}

double RunClock::elapsed() const { return earlier_seconds_ + seconds_since(start_time_); }

void RunClock::start_window() {
  window_start_ = Clock::now();
  window_tokens_ = 0;
}

double RunClock::tokens_per_second() const {
  return static_cast<double>(window_tokens_) / seconds_since(window_start_);
}

void RunClock::exclude_since(Clock::time_point from) { window_start_ += Clock::now() - from; }

double RunClock::seconds_left(std::int64_t step, std::int64_t total, double max_minutes) const {
  double left = -1;
  if (total > 0) {
    const double per_step = seconds_since(start_time_) / static_cast<double>(step - earlier_steps_);
    left = per_step * static_cast<double>(std::max<std::int64_t>(total - step, 0));
  }
  if (max_minutes > 0) {
    const double until_limit = std::max(0.0, 60 * max_minutes - elapsed());
    left = left < 0 ? until_limit : std::min(left, until_limit);
  }
  return left;
}

}  // namespace nunchi
