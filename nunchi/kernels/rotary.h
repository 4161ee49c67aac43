// Rotary position embedding: pairs of a head's columns rotated by an angle proportional to the
// position.
#pragma once

#include <cstdint>

#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// Column i of a head's first half and column i of its second half are a pair (a, b). At position p
//   out = (a · cos - b · sin, b · cos + a · sin)
// with cos and sin from row p of the table; `inverse` rotates backwards, which is the gradient.
// `out` may alias `x`. Rows past the count stay untouched.
template <class T>
struct Rotary {
  Rows rows;
  int heads = 1;                // heads of a row; later columns are neither read nor written
  std::int64_t head_width = 0;  // D, even
  bool inverse = false;
  const Accumulator<T>* table = nullptr;  // [P, D]: cosines of the D/2 pairs, then their sines
  const T* x = nullptr;                   // [T, heads * D]
  T* out = nullptr;                       // [T, heads * D]
  std::int64_t x_stride = 0, out_stride = 0;

  const char* name() const { return "rotary"; }
  Work work() const {
    return {.bytes = 2.0 * static_cast<double>(rows.capacity * heads * head_width) * sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Rotary<T>& p);

}  // namespace nunchi::kernels
