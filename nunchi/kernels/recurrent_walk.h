// Iterates over the steps of a recurrent layer, in order or in reverse order.
#pragma once

#include "nunchi/kernels/recurrent.h"

namespace nunchi::kernels {
namespace {

// Calls f(step) for the steps in order.
template <class F>
void for_steps(const RecurrentPlan& plan, F&& f) {
  RecurrentStep step;
  for (std::int64_t t = 0; t < plan.steps; ++t) {
    step = {.active = plan.active[t],
            .next_active = t + 1 < plan.steps ? plan.active[t + 1] : 0,
            .first = step.first + step.active,
            .previous_first = step.first,
            .index = t};
    f(step);
  }
}

// Calls f(step) for the steps in reverse order.
template <class F>
void for_steps_backward(const RecurrentPlan& plan, F&& f) {
  std::int64_t first = 0;
  for (std::int64_t t = 0; t < plan.steps; ++t) first += plan.active[t];
  for (std::int64_t t = plan.steps - 1; t >= 0; --t) {
    first -= plan.active[t];
    f(RecurrentStep{.active = plan.active[t],
                    .next_active = t + 1 < plan.steps ? plan.active[t + 1] : 0,
                    .first = first,
                    .previous_first = t > 0 ? first - plan.active[t - 1] : 0,
                    .index = t});
  }
}

}  // namespace
}  // namespace nunchi::kernels
