// Matrix products x · Wᵀ with weights of 8 bits, for inference on the CPU.
//
// A weight W [N, K] is stored as bytes q with one scale for each row n:
//
//   W[n, k] ≈ scale[n] · (q[n, k] − 128),  scale[n] = max |W[n, ·]| / 127
//
// The bytes are stored in panels of 16 rows, each in groups of 4 columns, in the order in which the
// products read them on every instruction set:
//
//   q[n / 16][k / 4][n % 16][k % 4]     padded with 128 to whole panels and groups
//
// A row of x is quantised in the same way when a product reads it, with its own scale. The sums of
// products of bytes are exact in 32 bits, so a row of the result depends only on that row of x and
// on W: neither on the other rows nor on threads and instruction set.
#pragma once

#include <cstdint>

#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

inline constexpr std::int64_t kInt8PanelRows = 16;
inline constexpr std::int64_t kInt8Group = 4;
inline constexpr int kInt8Zero = 128;  // the byte that stands for 0
// Longer rows could overflow a sum: 255 · 127 · K < 2³¹.
inline constexpr std::int64_t kInt8MaxColumns = 65536;

constexpr std::int64_t int8_panels(std::int64_t n) {
  return (n + kInt8PanelRows - 1) / kInt8PanelRows;
}
constexpr std::int64_t int8_groups(std::int64_t k) { return (k + kInt8Group - 1) / kInt8Group; }
// Bytes of `values` of a weight [N, K].
constexpr std::int64_t int8_bytes(std::int64_t n, std::int64_t k) {
  return int8_panels(n) * int8_groups(k) * kInt8PanelRows * kInt8Group;
}
// The index of q[n, k] in `values`.
constexpr std::int64_t int8_index(std::int64_t n, std::int64_t k, std::int64_t columns) {
  return ((n / kInt8PanelRows * int8_groups(columns) + k / kInt8Group) * kInt8PanelRows +
          n % kInt8PanelRows) *
             kInt8Group +
         k % kInt8Group;
}

// Quantises `count` rows of W, from row `first` on, which must be a multiple of 16 unless count is
// 0. Rows with numbers that are not finite become zeros with a scale of NaN. The padding of the
// last panel is written with the last row.
struct QuantizeMatrix {
  std::int64_t n = 0, k = 0;
  std::int64_t first = 0, count = 0;
  const float* w = nullptr;        // [count, K]
  std::uint8_t* values = nullptr;  // [int8_bytes(n, k)], of all of W
  float* scales = nullptr;         // [N]

  const char* name() const { return "quantize_matrix"; }
  Work work() const { return {.bytes = 5.0 * static_cast<double>(count * k)}; }
};
template <class Target>
void compute(ContextOf<Target>& ctx, const QuantizeMatrix& p);

// The product of a row-major x with a quantised weight: p.formed_b has the form int8, and p.b is
// not read.
struct Int8Product {
  Product<float> p;
  bool vnni = true;  // use AVX-512 VNNI if the processor has it; the result is the same without

  const char* name() const { return p.label; }
  Work work() const { return p.work(); }
};
template <class Target>
void compute(ContextOf<Target>& ctx, const Int8Product& product);

}  // namespace nunchi::kernels
