// From what a model makes of the newest tokens to the hypotheses that go on: the candidates of each
// row and a step of beam search, in fewer kernels where a device gains by it.
#pragma once

#include "nunchi/kernels/top_of_product.h"

namespace nunchi::kernels {

template <class T>
struct NextHypotheses {
  TopOfProduct<T> top;
  BeamStep<Summed<T>> step;  // its candidates are what `top` finds

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return top.name(); }
  Work work() const { return top.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const NextHypotheses<T>& p);

}  // namespace nunchi::kernels
