// f(x · W₁ᵀ + b₁) · W₂ᵀ + b₂ as one operation, f being relu or gelu_tanh: f, its gradient and the
// first bias's can ride in products.
#pragma once

#include "nunchi/kernels/activation.h"
#include "nunchi/ops/linear.h"

namespace nunchi {

struct FeedForward {
  Linear up;                                                           // W₁ [F, C], b₁ [F]
  Linear down;                                                         // W₂ [N, F], b₂ [N]
  kernels::ActivationKind activation = kernels::ActivationKind::relu;  // or gelu_tanh
};

// x [R, C] → [R, N]. All rows are computed, those past a batch's count too.
Variable feed_forward(const Variable& x, const FeedForward& parameters);

}  // namespace nunchi
