// A norm and the first linear layer over it, as one kernel where that is faster. Inference only:
// throws Error while a tape records.
#pragma once

#include "nunchi/ops/linear.h"
#include "nunchi/ops/residual_norm.h"

namespace nunchi {

struct NormLinearResult {
  Tensor sum;  // residual + branch; the residual itself without a branch
  Tensor out;  // the norm of the sum
  Tensor y;    // [T, N], the layer's output
};

// residual and branch [T, C]; the branch may be undefined.
NormLinearResult norm_linear(const Tensor& residual, const Tensor& branch, const Ragged& batch,
                             const Norm& norm, const Linear& layer);

}  // namespace nunchi
