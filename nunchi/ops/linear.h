// y = activation(x · Wᵀ + b): one product with its bias and, optionally, max(0, ·).
#pragma once

#include "nunchi/autograd/variable.h"

namespace nunchi {

struct Linear {
  Variable weight;  // [N, K]
  Variable bias;    // [N]; may be undefined
  bool relu = false;
};

// x [R, K] → [R, N]. Rows past a batch's count are computed too.
Variable linear(const Variable& x, const Linear& parameters);

// residual [R, N] + x · Wᵀ + b in one product. Inference only: throws Error while a tape records.
Tensor linear_add(const Tensor& residual, const Tensor& x, const Linear& parameters);

}  // namespace nunchi
