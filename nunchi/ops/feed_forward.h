// f(x · W₁ᵀ + b₁) · W₂ᵀ + b₂ as one operation, with f relu or gelu_tanh: products compute f, its
// gradient and the gradient of b₁ where the device can fuse them.
#pragma once

#include "nunchi/kernels/activation.h"
#include "nunchi/ops/linear.h"
#include "nunchi/ops/residual_stream.h"

namespace nunchi {

struct FeedForward {
  Linear up;                                                           // W₁ [F, C], b₁ [F]
  Linear down;                                                         // W₂ [N, F], b₂ [N]
  kernels::ActivationKind activation = kernels::ActivationKind::relu;  // relu or gelu_tanh
};

// x [R, C] → [R, N]. Rows past a batch's count are computed too.
Variable feed_forward(const Variable& x, const FeedForward& parameters);
// The same as a branch of a residual stream. If the first product is fused with the norm before it,
// gelu is a separate kernel.
Branch feed_forward(LazyNorm& x, const FeedForward& parameters, const Ragged& batch);

}  // namespace nunchi
