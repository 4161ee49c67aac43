// What the norm's two ways share: rows by their width, and a single column's dropout.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

constexpr int kChunk = 8 * kWarp;  // columns that a warp's lanes hold at a time, eight each

// f.operator()<Chunks>() for rows of this width, of which lanes hold Chunks times eight columns, or
// <0> where they cannot.
template <class F>
void by_width(std::int64_t width, bool aligned, F&& f) {
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

template <class N, class... More>
bool all_wide(std::int64_t width, const N* first, const More*... more) {
  return wide(first, width) && (... && wide(more, width));
}

// A row's place among the draws, fetched with the row.
struct RowPlace {
  std::uint32_t position = 0, sentence = 0;
};
__device__ inline RowPlace place_of(const Rows& rows, const DropoutDraws& draws, std::int64_t row) {
  if (draws.threshold == 0) return {};
  return {static_cast<std::uint32_t>(rows.position[row]),
          static_cast<std::uint32_t>(rows.sentence[row])};
}

// The same key, of which the compiler does not know it: or it would keep the keys of all ten rounds
// from row to row, for which there are no registers.
__device__ inline philox::Key not_kept(philox::Key key) {
  asm volatile("" : "+r"(key[0]), "+r"(key[1]));
  return key;
}

__device__ inline float keep_factor(const DropoutDraws& draws, philox::Key key, const Rows& rows,
                                    std::int64_t row, std::int64_t column) {
  if (draws.threshold == 0) return 1;
  float factor[8];
  const RowPlace place = place_of(rows, draws, row);
  keep_factors(draws, key, static_cast<std::uint32_t>(column / 8 * 8), place.position,
               place.sentence, factor);
  float mine = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (j == column % 8) mine = factor[j];
  }
  return mine;
}

}  // namespace nunchi::kernels
