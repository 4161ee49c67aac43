// From hidden rows to the next hypotheses: finds the candidates of each row and makes a beam search
// step with them, in fewer kernels where that is faster.
#pragma once

#include "nunchi/kernels/projection_top_tokens.h"

namespace nunchi::kernels {

template <class T>
struct NextHypotheses {
  ProjectionTopTokens<T> top;
  BeamStep<Accumulator<T>> step;  // reads the candidates that `top` finds

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return top.name(); }
  Work work() const { return top.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const NextHypotheses<T>& p);

}  // namespace nunchi::kernels
