// A normalisation and the linear layer that reads it first, as one kernel where that is faster. Not
// recorded: for steps that generate.
#pragma once

#include "nunchi/ops/linear.h"
#include "nunchi/ops/residual_norm.h"

namespace nunchi {

struct NormLinearResult {
  Tensor sum;  // residual + branch; the residual itself without a branch
  Tensor out;  // its normalisation
  Tensor y;    // the layer's, [rows, N]
};

// residual and branch [T, C]; the branch may be undefined.
NormLinearResult norm_linear(const Tensor& residual, const Tensor& branch, const Ragged& batch,
                             const Norm& norm, const Linear& layer);

}  // namespace nunchi
