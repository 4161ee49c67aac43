// Register-blocked products of small tiles in the cache: the core of attention and of f64 products.
//
// Each element of c is summed over k in ascending order, one fused multiply-add at a time,
// in whichever block it is: the bits of a row do not depend on the rows around it.
#pragma once

#include <cstdint>

#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

// The left matrix of a tile product: a(i, k) = data[i * row_stride + k * k_stride].
template <class T>
struct TileA {
  const T* data;
  std::int64_t row_stride;
  std::int64_t k_stride;
};

// c[Rows, Vectors * W] = a · b, or += with `accumulate`; b and c are row-major.
template <int Rows, int Vectors, class T>
[[gnu::always_inline]] inline void block_product(std::int64_t k, TileA<T> a, const T* b,
                                                 std::int64_t b_stride, T* c, std::int64_t c_stride,
                                                 bool accumulate) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  V accumulators[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      accumulators[i][v] = accumulate ? load<V>(c + i * c_stride + v * W) : V{};
    }
  }
  for (std::int64_t kk = 0; kk < k; ++kk) {
    V columns[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) columns[v] = load<V>(b + kk * b_stride + v * W);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const V factor = splat<V>(a.data[i * a.row_stride + kk * a.k_stride]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v)
        accumulators[i][v] = multiply_add(factor, columns[v], accumulators[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) store<V>(c + i * c_stride + v * W, accumulators[i][v]);
  }
}

#if defined(__AVX512F__)
constexpr int kBlockRows = 6, kBlockVectors = 4;  // 24 of 32 registers hold accumulators
#else
constexpr int kBlockRows = 6, kBlockVectors = 2;  // 12 of 16 registers
#endif

// As block_product, for m rows.
template <int Vectors, class T>
void panel_product(std::int64_t m, std::int64_t k, TileA<T> a, const T* b, std::int64_t b_stride,
                   T* c, std::int64_t c_stride, bool accumulate) {
  std::int64_t i = 0;
  for (; i + kBlockRows <= m; i += kBlockRows) {
    block_product<kBlockRows, Vectors>(k, {a.data + i * a.row_stride, a.row_stride, a.k_stride}, b,
                                       b_stride, c + i * c_stride, c_stride, accumulate);
  }
  const TileA<T> rest{a.data + i * a.row_stride, a.row_stride, a.k_stride};
  T* out = c + i * c_stride;
  switch (m - i) {
    case 5:
      return block_product<5, Vectors>(k, rest, b, b_stride, out, c_stride, accumulate);
    case 4:
      return block_product<4, Vectors>(k, rest, b, b_stride, out, c_stride, accumulate);
    case 3:
      return block_product<3, Vectors>(k, rest, b, b_stride, out, c_stride, accumulate);
    case 2:
      return block_product<2, Vectors>(k, rest, b, b_stride, out, c_stride, accumulate);
    case 1:
      return block_product<1, Vectors>(k, rest, b, b_stride, out, c_stride, accumulate);
    default:
      return;
  }
}

// c[m, n] = a[m, k] · b[k, n], or += with `accumulate`; n must be a multiple of the vector width.
template <class T>
void tile_product(std::int64_t m, std::int64_t n, std::int64_t k, TileA<T> a, const T* b,
                  std::int64_t b_stride, T* c, std::int64_t c_stride, bool accumulate) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t j = 0;
  for (; j + kBlockVectors * W <= n; j += kBlockVectors * W) {
    panel_product<kBlockVectors>(m, k, a, b + j, b_stride, c + j, c_stride, accumulate);
  }
  for (; j + 2 * W <= n; j += 2 * W) {
    panel_product<2>(m, k, a, b + j, b_stride, c + j, c_stride, accumulate);
  }
  for (; j < n; j += W) panel_product<1>(m, k, a, b + j, b_stride, c + j, c_stride, accumulate);
}

}  // namespace
}  // namespace nunchi::kernels
