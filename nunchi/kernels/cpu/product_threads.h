// The number of threads of an f32 product.
#pragma once

#include <algorithm>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {
namespace {

// About how long one thread takes: as long as the multiplications, or as reading b if there are few
// rows.
inline double product_nanoseconds(const Product<float>& p) {
  constexpr double kMultiplicationsPerNanosecond = 56, kBytesPerNanosecond = 80;
  const double b_elements = static_cast<double>(p.n) * static_cast<double>(p.k);
  return std::max(static_cast<double>(p.m) * b_elements / kMultiplicationsPerNanosecond,
                  b_elements * sizeof(float) / kBytesPerNanosecond);
}

// oneDNN splits sums of at most this many products among threads for no shape.
constexpr std::int64_t kMaxUnsplitSum = 1024;

// One or all. If the bits could depend on it, the sizes alone decide, so that a run with the same
// number of threads gives the same bits. They do not depend on it if rows are independent, unless
// the library splits the sums of a gradient, aᵀ · b over many rows, among threads.
inline int product_threads(const CpuContext& ctx, const Product<float>& p) {
  if (ctx.threads() <= 1) return 1;
  const double nanoseconds = product_nanoseconds(p);
  const bool same_bits = rows_are_independent() && (!p.transpose_a || p.k <= kMaxUnsplitSum);
  const bool large = same_bits ? is_large_now(ctx, nanoseconds) : is_large(ctx, nanoseconds);
  return large ? ctx.threads() : 1;
}

}  // namespace
}  // namespace nunchi::kernels
