// Rotation of queries and keys by their positions.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct Rotary {
  int heads = 1;  // number of heads that are rotated, the first ones of each row
  Tensor table;   // [P, D] in the accumulator's type, see kernels/rotary.h
};

// Rotates these heads of x [T, at least heads · D] in place and returns it: x must not be used
// afterwards.
Variable rotary(const Variable& x, const Ragged& batch, const Rotary& rotation);

}  // namespace nunchi
