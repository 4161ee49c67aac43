// From what a model makes of the newest tokens to the hypotheses that go on: the candidates of each
// row and a step of beam search, in fewer kernels where a device gains by it.
#pragma once

#include "nunchi/kernels/top_of_product.h"

namespace nunchi::kernels {

template <class T>
struct NextHypotheses {
  TopOfProduct<T> top;
  BeamStep<Summed<T>> step;  // its candidates are what `top` finds

  const char* name() const { return top.name(); }
  Work work() const { return top.work(); }
};

template <class T>
inline constexpr bool kOfParts<NextHypotheses<T>> = true;

namespace cpu {
template <class T>
inline constexpr bool kOneVersion<NextHypotheses<T>> = true;
}  // namespace cpu

}  // namespace nunchi::kernels
