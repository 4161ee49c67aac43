// The logistic function and the hyperbolic tangent of vectors and of single elements.
#pragma once

#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

template <class V>
[[gnu::always_inline]] inline V logistic(V x) {
  using T = Element<V>;
  return T(1) / (T(1) + exponential<V>(-x));
}

template <class V>
[[gnu::always_inline]] inline V hyperbolic_tangent(V x) {
  using T = Element<V>;
  const V u = T(-2) * (x < T(0) ? -x : x);
  const V expm1 = u > T(-0.34) ? exponential_minus_one<V>(u) : exponential<V>(u) - T(1);
  const V magnitude = -expm1 / (expm1 + T(2));
  return x < T(0) ? -magnitude : magnitude;
}

}  // namespace
}  // namespace nunchi::kernels
