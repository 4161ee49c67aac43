// Shared by the norm's forward and backward pass: dispatch by row width, and dropout of a single
// column.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

constexpr int kChunk = 8 * kWarp;  // columns that a warp holds per chunk, eight per lane

// Calls f.operator()<Chunks>() so that a warp can hold a row in registers, 8 * Chunks columns per
// lane. Chunks is 0 if rows are unaligned, not a multiple of eight columns wide, or too wide.
template <class F>
void dispatch_width(std::int64_t width, bool aligned, F&& f) {
  if (!aligned || width % 8 != 0 || width > 8 * kChunk) {
    f.template operator()<0>();
  } else if (width <= kChunk) {
    f.template operator()<1>();
  } else if (width <= 2 * kChunk) {
    f.template operator()<2>();
  } else if (width <= 3 * kChunk) {
    f.template operator()<3>();
  } else if (width <= 4 * kChunk) {
    f.template operator()<4>();
  } else {
    f.template operator()<8>();
  }
}

// Whether rows of `width` elements of all matrices can be read eight elements at a time.
template <class N, class... More>
bool all_rows_aligned(std::int64_t width, const N* first, const More*... more) {
  return rows_are_aligned(first, width) && (... && rows_are_aligned(more, width));
}

// A row's position and sentence for dropout, prefetched with the row.
struct DropoutRow {
  std::uint32_t position = 0, sentence = 0;
};
__device__ inline DropoutRow dropout_row_of(const Rows& rows, const DropoutParameters& dropout,
                                            std::int64_t row) {
  if (!dropout.active()) return {};
  return {static_cast<std::uint32_t>(rows.position[row]),
          static_cast<std::uint32_t>(rows.sentence[row])};
}

// The same key, opaque to the compiler: otherwise it would keep the keys of all ten Philox rounds
// in registers across rows, and spill.
__device__ inline philox::Key hidden_from_optimizer(philox::Key key) {
  asm volatile("" : "+r"(key[0]), "+r"(key[1]));
  return key;
}

__device__ inline float dropout_factor(const DropoutParameters& dropout, philox::Key key,
                                       const Rows& rows, std::int64_t row, std::int64_t column) {
  if (!dropout.active()) return 1;
  float factor[8];
  const DropoutRow dropout_row = dropout_row_of(rows, dropout, row);
  compute_dropout_factors(dropout, key, static_cast<std::uint32_t>(column / 8 * 8),
                          dropout_row.position, dropout_row.sentence, factor);
  float result = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (j == column % 8) result = factor[j];
  }
  return result;
}

}  // namespace nunchi::kernels
