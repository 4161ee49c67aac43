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
  began_ = Clock::now();
  begin_window();
}

double RunClock::elapsed() const { return seconds_before_ + seconds_since(began_); }

void RunClock::begin_window() {
  window_began_ = Clock::now();
  window_tokens_ = 0;
}

double RunClock::tokens_per_second() const {
  return static_cast<double>(window_tokens_) / seconds_since(window_began_);
}

void RunClock::leave_out_since(Clock::time_point began) { window_began_ += Clock::now() - began; }

double RunClock::seconds_left(std::int64_t step, std::int64_t total, double max_minutes) const {
  double left = -1;
  if (total > 0) {
    const double per_step = seconds_since(began_) / static_cast<double>(step - steps_before_);
    left = per_step * static_cast<double>(std::max<std::int64_t>(total - step, 0));
  }
  if (max_minutes > 0) {
    const double until = std::max(0.0, 60 * max_minutes - elapsed());
    left = left < 0 ? until : std::min(left, until);
  }
  return left;
}

}  // namespace nunchi
