// Element-wise non-linearity with the dropout that may follow it.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/kernels/activation.h"
#include "nunchi/ops/dropout.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

using kernels::ActivationKind;

// x [T, C] → [T, C], or [T, 2 C] → [T, C] for the gated kinds.
Variable activation(const Variable& x, const Ragged& batch, ActivationKind kind,
                    const Dropout& dropout = {});

// x with dropout; x itself if dropout is inactive.
Variable with_dropout(const Variable& x, const Ragged& batch, const Dropout& dropout);

}  // namespace nunchi
