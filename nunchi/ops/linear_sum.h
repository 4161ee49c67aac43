// y = first · Aᵀ + second · Bᵀ + bias: one linear layer over the columns of two matrices, without
// copying them next to each other.
#pragma once

#include "nunchi/autograd/variable.h"

namespace nunchi {

struct LinearSum {
  Variable first_weight;   // [N, K]
  Variable second_weight;  // [N, L]
  Variable bias;           // [N]
};

// first [R, K], second [R, L] → [R, N]. Rows past a batch's count are computed too.
Variable linear_sum(const Variable& first, const Variable& second, const LinearSum& parameters);

}  // namespace nunchi
