// The learning rate as a function of the step alone, so that a resumed run needs no state for it.
#pragma once

#include <cstdint>

namespace nunchi {

enum class ScheduleKind : std::uint8_t {
  paper,         // factor · width^-0.5 · min(s^-0.5, s · warmup^-1.5)
  inverse_sqrt,  // peak · min(s / warmup, (warmup / s)^0.5)
  cosine,        // after the warm-up half a cosine from the peak to `final` at `total_steps`
  linear,        // after the warm-up a straight line from the peak to `final` at `total_steps`
  constant,      // the peak after the warm-up
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double peak = 5e-4;            // at the end of the warm-up; `paper` computes its own
  double factor = 1;             // of `paper`
  std::int64_t warmup = 4000;    // steps of a linear increase from zero; 0: none
  double final = 0;              // the lowest rate after the warm-up
  std::int64_t total_steps = 0;  // of `cosine` and `linear`, which stay at `final` afterwards
  std::int64_t width = 512;      // the paper's d_model
};

// The rate of step s, counted from 1. Throws Error for a step below 1, numbers out of range, and
// a cosine or linear schedule whose warm-up does not end before its last step.
double learning_rate(const Schedule& schedule, std::int64_t step);

// Throws what learning_rate() would, before the first step.
void check(const Schedule& schedule);

}  // namespace nunchi
