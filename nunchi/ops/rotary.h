// Rotation of queries and keys by their positions.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct Rotary {
  int heads = 1;  // of a row that are rotated, from the first
  Tensor table;   // [P, D] in the accumulator's type, see kernels/rotary.h
};

// x [T, at least heads · D] with those heads rotated in place: x is consumed.
Variable rotary(const Variable& x, const Ragged& batch, const Rotary& rotation);

}  // namespace nunchi
