// The learning rate as a function of the step alone, so that a resumed run needs no state for it.
#pragma once

#include <cstdint>

namespace nunchi {

enum class ScheduleKind : std::uint8_t {
  paper,         // factor · width^-0.5 · min(s^-0.5, s · warmup^-1.5)
  inverse_sqrt,  // peak · min(s / warmup, (warmup / s)^0.5)
  cosine,        // after the warm-up, half a cosine from the peak to `final` at `total_steps`
  linear,        // after the warm-up, a straight line from the peak to `final` at `total_steps`
  constant,      // after the warm-up, always the peak
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double peak = 5e-4;            // rate at the end of the warm-up; not used by `paper`
  double factor = 1;             // used by `paper` only
  std::int64_t warmup = 4000;    // steps of a linear increase from zero; 0: none
  double final = 0;              // lower bound of the rate after the warm-up
  std::int64_t total_steps = 0;  // where `cosine` and `linear` reach `final`, which they then keep
  std::int64_t width = 512;      // d_model, used by `paper` only
};

// The learning rate of a step (s above), counted from 1. Throws Error for a step below 1, for
// numbers out of range, and for a cosine or linear schedule whose warm-up does not end before
// total_steps.
double learning_rate(const Schedule& schedule, std::int64_t step);

// Throws the errors of learning_rate() that do not depend on the step.
void check(const Schedule& schedule);

}  // namespace nunchi
