// Some rows of a matrix, with the way back: rows that were left out get no gradient.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

// from [any, C]; index i32 [at least rows.rows]: no two of them name the same row. Returns
// [rows.capacity, C], row r of which is from[index[r]]; those past the count are zero.
Variable gather_rows(const Variable& from, const Ragged& rows, const Tensor& index);

}  // namespace nunchi
