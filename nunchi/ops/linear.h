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

}  // namespace nunchi
