// The residual sum, the dropout of its branch and the norm that follows, in one pass.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/norm.h"
#include "nunchi/ops/dropout.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

using kernels::NormKind;

struct Norm {
  NormKind kind = NormKind::layer;
  double epsilon = 1e-5;
  Variable gamma;  // [C]
  Variable beta;   // [C]; undefined for rms
};

struct ResidualNormResult {
  Variable sum;  // residual + dropout(branch)
  Variable out;  // its normalisation
};

// residual and branch [T, C]; without a branch the sum is the residual itself.
ResidualNormResult residual_norm(const Variable& residual, const Variable& branch,
                                 const Ragged& batch, const Norm& norm,
                                 const Dropout& dropout = {});

}  // namespace nunchi
