// The learning rate as a function of the step and of nothing else, so that a resumed run needs no
// state for it.
#pragma once

#include <cstdint>

namespace nunchi {

enum class ScheduleKind : std::uint8_t {
  paper,         // factor · width^-0.5 · min(s^-0.5, s · warmup^-1.5)
  inverse_sqrt,  // peak · min(s / warmup, (warmup / s)^0.5)
  cosine,        // up to the peak, then half a cosine down to `final` at `total_steps`
  linear,        // up to the peak, then straight down to `final` at `total_steps`
  constant,      // up to the peak, then the peak
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double peak = 5e-4;            // the rate at the end of the warm-up; the paper's is computed
  double factor = 1;             // of the paper's formula
  std::int64_t warmup = 4000;    // steps of a straight line up from zero; 0: none
  double final = 0;              // after the warm-up no rate is below this
  std::int64_t total_steps = 0;  // cosine and linear need it; they stay at `final` after it
  std::int64_t width = 512;      // the paper's d_model
};

// The rate of step s, counted from 1. Throws Error for a step below 1, numbers out of range, and
// a cosine or linear schedule whose warm-up does not end before its last step.
double learning_rate(const Schedule& schedule, std::int64_t step);

// What learning_rate() would throw, before the first step.
void check(const Schedule& schedule);

}  // namespace nunchi
