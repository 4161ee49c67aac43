// Selects rows of a matrix. In the backward pass, the gradient of the other rows is zero.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

// from [any, C]; index i32 [at least rows.rows], without duplicates. Returns [rows.capacity, C],
// whose row r is from[index[r]]; rows past the count are zero.
Variable gather_rows(const Variable& from, const Ragged& rows, const Tensor& index);

}  // namespace nunchi
