// y = activation(x · Wᵀ + b): one product with its bias, and with max(0, ·) where asked for.
#pragma once

#include "nunchi/autograd/variable.h"

namespace nunchi {

struct Linear {
  Variable weight;  // [N, K]
  Variable bias;    // [N]; may be undefined
  bool relu = false;
};

// x [R, K] → [R, N]. All rows are computed, those past a batch's count too.
Variable linear(const Variable& x, const Linear& parameters);

// onto [R, N] + x · Wᵀ + b, for steps that generate: it is not recorded.
Tensor linear_onto(const Tensor& onto, const Tensor& x, const Linear& parameters);
// Whether that is one kernel on the context's device, or better left to who reads both.
bool adds_on_the_way(ContextBase& context);

}  // namespace nunchi
