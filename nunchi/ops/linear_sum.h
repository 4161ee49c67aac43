// y = first · Aᵀ + second · Bᵀ + bias: one linear layer over rows that stand in two matrices, which
// need not be put side by side for it.
#pragma once

#include "nunchi/autograd/variable.h"

namespace nunchi {

struct LinearSum {
  Variable first_weight;   // [N, K]
  Variable second_weight;  // [N, L]
  Variable bias;           // [N]
};

// first [R, K], second [R, L] → [R, N]. All rows are computed, those past a batch's count too.
Variable linear_sum(const Variable& first, const Variable& second, const LinearSum& parameters);

}  // namespace nunchi
