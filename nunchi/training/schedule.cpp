#include "nunchi/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// The fraction of the steps after the warm-up that is done, 0 to 1.
double progress(const Schedule& schedule, std::int64_t step) {
  const auto done = static_cast<double>(step - schedule.warmup);
  return std::min(1.0, done / static_cast<double>(schedule.total_steps - schedule.warmup));
}

double after_warmup(const Schedule& schedule, std::int64_t step) {
  const double peak = schedule.peak, final = schedule.final;
  switch (schedule.kind) {
    case ScheduleKind::paper:
      return schedule.factor /
             std::sqrt(static_cast<double>(schedule.width) * static_cast<double>(step));
    case ScheduleKind::inverse_sqrt: {
      const auto warmup = static_cast<double>(std::max<std::int64_t>(schedule.warmup, 1));
      return peak * std::sqrt(warmup / static_cast<double>(step));
    }
    case ScheduleKind::cosine: {
      const double angle = std::numbers::pi * progress(schedule, step);
      return final + (peak - final) * (1 + std::cos(angle)) / 2;
    }
    case ScheduleKind::linear:
      return final + (peak - final) * (1 - progress(schedule, step));
    case ScheduleKind::constant:
      return peak;
  }
  throw Error("unknown schedule (internal error).");
}

}  // namespace

void check(const Schedule& schedule) {
  const auto is_valid = [](double rate) { return std::isfinite(rate) && rate >= 0; };
  if (!is_valid(schedule.peak) || !is_valid(schedule.factor) || !is_valid(schedule.final)) {
    throw Error("a learning rate must be finite and not negative.");
  }
  if (schedule.warmup < 0) throw Error("the warm-up cannot have a negative number of steps.");
  if (schedule.kind == ScheduleKind::paper && schedule.width < 1) {
    throw Error("the paper's schedule needs the model's width.");
  }
  const bool ends = schedule.kind == ScheduleKind::cosine || schedule.kind == ScheduleKind::linear;
  if (ends && schedule.total_steps <= schedule.warmup) {
    throw Error("a cosine or linear schedule needs a last step after its warm-up of " +
                std::to_string(schedule.warmup) + " steps, but the last step is " +
                std::to_string(schedule.total_steps) + ". Set training.max_steps.");
  }
}

double learning_rate(const Schedule& schedule, std::int64_t step) {
  check(schedule);
  if (step < 1) throw Error("steps are counted from 1.");
  if (step < schedule.warmup) {
    // The warm-up rises linearly to the rate at its end.
    const double peak = std::max(after_warmup(schedule, schedule.warmup), schedule.final);
    return peak * static_cast<double>(step) / static_cast<double>(schedule.warmup);
  }
  return std::max(after_warmup(schedule, step), schedule.final);
}

}  // namespace nunchi
