// Queries and keys turned by their positions.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct Rotary {
  int heads = 1;  // the first so many of a row are turned; the rest of it stays
  Tensor table;   // [P, D] of the type that x's is summed in, see kernels/rotary.h
};

// x [T, at least heads · D] with those heads turned, in x's own memory: x is used up.
Variable rotary(const Variable& x, const Ragged& batch, const Rotary& rotation);

}  // namespace nunchi
