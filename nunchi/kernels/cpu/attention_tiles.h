// What the attention kernels share on the CPU: tiles of queries and keys, masks and biases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cpu/keep.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels::cpu {
namespace {

// Keys of a tile: a multiple of every vector's width and of what one call of Philox serves.
constexpr std::int64_t kKeyTile = 64;
// Queries of a tile: a multiple of the register block's rows.
constexpr std::int64_t kQueryTile = 48;

template <class T>
constexpr std::int64_t padded(std::int64_t width) {
  return (width + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// One sentence's queries and keys, for one head.
template <class T>
struct HeadView {
  std::int64_t sentence;  // b
  int head;               // h
  std::int64_t queries, keys;
  std::int64_t first_query, first_key;  // rows of the batch
  std::int64_t shift;                   // query i stands at key position i + shift
  const T *q, *k, *v;
};

template <class T>
HeadView<T> head_view(const AttentionInputs<T>& in, std::int64_t sentence, int head) {
  const std::int64_t first_query = in.q_offsets[sentence], first_key = in.k_begin[sentence];
  const std::int64_t queries = in.q_offsets[sentence + 1] - first_query;
  const std::int64_t keys = in.k_length[sentence];
  const int kv_head = head / (in.heads / in.kv_heads);
  return {.sentence = sentence,
          .head = head,
          .queries = queries,
          .keys = keys,
          .first_query = first_query,
          .first_key = first_key,
          .shift = in.causal ? keys - queries : 0,
          .q = in.q + first_query * in.q_stride + head * in.head_width,
          .k = in.k + first_key * in.k_stride + kv_head * in.head_width,
          .v = in.v + first_key * in.v_stride + kv_head * in.head_width};
}

// How many keys query i may see.
template <class T>
std::int64_t visible_keys(const AttentionInputs<T>& in, const HeadView<T>& view, std::int64_t i) {
  return in.causal ? std::clamp<std::int64_t>(i + view.shift + 1, 0, view.keys) : view.keys;
}

// to[r, 0:width] = from[r] * factor, the rest of a padded row zero.
template <class T>
void pack_rows(std::int64_t rows, std::int64_t width, const T* from, std::int64_t stride, T factor,
               T* to) {
  const std::int64_t full = padded<T>(width);
  for (std::int64_t r = 0; r < rows; ++r) {
    over_row<T>(width, [&]<class V>(std::int64_t i, V) {
      store<V>(to + r * full + i, load<V>(from + r * stride + i) * factor);
    });
    for (std::int64_t i = width; i < full; ++i) to[r * full + i] = T(0);
  }
}

// to[d, r] = from[r, d] for the keys of a tile; columns past `rows` zero.
template <class T>
void pack_transposed(std::int64_t rows, std::int64_t width, const T* from, std::int64_t stride,
                     T* to) {
  constexpr std::int64_t kBlock = 16;  // columns at once, so that a row's cache line is read once
  for (std::int64_t d0 = 0; d0 < width; d0 += kBlock) {
    const std::int64_t d1 = std::min(width, d0 + kBlock);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t d = d0; d < d1; ++d) to[d * kKeyTile + r] = from[r * stride + d];
    }
    for (std::int64_t d = d0; d < d1; ++d) {
      for (std::int64_t r = rows; r < kKeyTile; ++r) to[d * kKeyTile + r] = T(0);
    }
  }
}

// Biases of a tile depend on key - query alone: one line of them serves every row.
template <class T>
class BiasLine {
 public:
  static constexpr std::int64_t kLength = kQueryTile + kKeyTile;

  // For query positions from `query` and keys from `key`.
  BiasLine(const AttentionInputs<T>& in, int head, std::int64_t query, std::int64_t key)
      : active_(in.bias.kind != ScoreBias<T>::Kind::none) {
    if (!active_) return;
    for (std::int64_t n = 0; n < kLength; ++n) {
      const std::int64_t relative = key - query + n - (kQueryTile - 1);
      if (in.bias.kind == ScoreBias<T>::Kind::slopes) {
        line_[n] = -in.bias.slopes[head] * static_cast<T>(relative < 0 ? -relative : relative);
      } else {
        line_[n] = in.bias.table[bucket(in, relative) * in.heads + head];
      }
    }
  }

  static int bucket(const AttentionInputs<T>& in, std::int64_t relative) {
    return relative_bucket(relative, in.bias.buckets, in.bias.max_distance, in.bias.bidirectional);
  }
  bool active() const { return active_; }
  // The biases of the tile's row i, from its first key on.
  const T* row(std::int64_t i) const { return line_ + kQueryTile - 1 - i; }

 private:
  bool active_;
  T line_[kLength] = {};
};

// The first of a head's columns in dropout's draws.
inline std::uint32_t draw_column(int head, std::int64_t key) {
  return (static_cast<std::uint32_t>(head) << 23) + static_cast<std::uint32_t>(key);
}

// Lane numbers 0, 1, 2, … to compare with a count.
template <class T>
[[gnu::always_inline]] inline Vec<Integer<T>> lane_numbers() {
  Vec<Integer<T>> numbers;
  for (int i = 0; i < kLanes<T>; ++i) numbers[i] = static_cast<Integer<T>>(i);
  return numbers;
}

// The lanes of v from `count` on become `other`.
template <class T>
[[gnu::always_inline]] inline Vec<T> first_lanes(Vec<T> v, std::int64_t count, T other) {
  const auto limit = static_cast<Integer<T>>(std::clamp<std::int64_t>(count, 0, kLanes<T>));
  return lane_numbers<T>() < limit ? v : splat<Vec<T>>(other);
}

}  // namespace
}  // namespace nunchi::kernels::cpu
