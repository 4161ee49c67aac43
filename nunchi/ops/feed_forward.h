// max(0, x · W₁ᵀ + b₁) · W₂ᵀ + b₂ as one operation: on the way back relu's gradient and the first
// bias's can ride in a product.
#pragma once

#include "nunchi/ops/linear.h"

namespace nunchi {

struct FeedForward {
  Linear up;    // W₁ [F, C], b₁ [F]; with relu, asked for or not
  Linear down;  // W₂ [N, F], b₂ [N]; without
};

// x [R, C] → [R, N]. All rows are computed, those past a batch's count too.
Variable feed_forward(const Variable& x, const FeedForward& parameters);

}  // namespace nunchi
