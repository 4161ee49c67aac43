// Computes token embeddings, eight columns per thread.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/embedding.h"

namespace nunchi::kernels {

// Up to eight columns; Aligned: exactly eight, at an aligned address.
template <bool Aligned, class N>
__device__ void load_columns(const N* from, std::int64_t columns, float (&x)[8]) {
  if constexpr (Aligned) {
    load8(from, x);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = i < columns ? to_float(from[i]) : 0.0f;
  }
}
template <bool Aligned, class N>
__device__ void store_columns(N* to, std::int64_t columns, const float (&x)[8]) {
  if constexpr (Aligned) {
    store8(to, x);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < columns) to[i] = from_float<N>(x[i]);
    }
  }
}

// Whether all rows can be read eight elements at a time.
template <class T>
bool rows_are_aligned(const Embedding<T>& p) {
  return rows_are_aligned(native(p.table), p.width) &&
         rows_are_aligned(native(p.positions), p.width) && rows_are_aligned(native(p.out), p.width);
}

// x = eight columns of table[id] * scale + positions[position], before dropout. `scale` is p.scale
// as a float.
template <bool Aligned, class N>
__device__ void embed_columns(const Embedding<N>& p, float scale, std::int64_t id,
                              std::int64_t position, std::int64_t column, float (&x)[8]) {
  load_columns<Aligned>(p.table + id * p.width + column, p.width - column, x);
  // Explicit fused multiply-add: the compiler would contract it in some of the kernels only, and
  // a token's bits must not depend on the kernel that embeds it.
  float shift[8] = {};
  if (p.positions != nullptr) {
    load_columns<Aligned>(p.positions + position * p.width + column, p.width - column, shift);
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) x[j] = fmaf(x[j], scale, shift[j]);
}

}  // namespace nunchi::kernels
