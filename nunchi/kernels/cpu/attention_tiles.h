// Functions shared by the attention kernels on the CPU: tiles of queries and keys, masks, biases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cpu/bucket_starts.h"
#include "nunchi/kernels/cpu/dropout_mask.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

// About how long one thread takes for the scores and sums of a head, forward.
inline double attention_nanoseconds(std::int64_t queries, std::int64_t keys,
                                    std::int64_t head_width) {
  return static_cast<double>(queries * keys) * (0.5 + static_cast<double>(head_width) / 16);
}

// Keys per tile: a multiple of every vector width and of the columns of one Philox call.
constexpr std::int64_t kKeyTile = 64;
// Queries per tile: a multiple of the register block's rows.
constexpr std::int64_t kQueryTile = 48;

// Rounds up to a multiple of the vector width.
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
  std::int64_t shift;                   // query i is at key position i + shift
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

// Number of keys that query i sees.
template <class T>
std::int64_t visible_keys(const AttentionInputs<T>& in, const HeadView<T>& view, std::int64_t i) {
  return in.causal ? std::clamp<std::int64_t>(i + view.shift + 1, 0, view.keys) : view.keys;
}

// to[r, 0:width] = from[r] * factor. Rows of `to` are padded to a multiple of the vector width,
// with zeros.
template <class T>
void pack_rows(std::int64_t rows, std::int64_t width, const T* from, std::int64_t stride, T factor,
               T* to) {
  const std::int64_t padded_width = padded<T>(width);
  for (std::int64_t r = 0; r < rows; ++r) {
    for_each_vector<T>(width, [&]<class V>(std::int64_t i, V) {
      store<V>(to + r * padded_width + i, load<V>(from + r * stride + i) * factor);
    });
    for (std::int64_t i = width; i < padded_width; ++i) to[r * padded_width + i] = T(0);
  }
}

// Interleaves the lower halves of a and b, or the upper halves.
template <bool Upper, class V, int... I>
[[gnu::always_inline]] inline V interleaved(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int W = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(a, b, ((I % 2) * W + I / 2 + (Upper ? W / 2 : 0))...);
}

// to[j, i] = from[i, j] for a block of W × W; writes the first `columns` rows j. Interleaving row i
// with row i + W/2, log2 W times, transposes the block.
template <class T>
[[gnu::always_inline]] inline void transpose_block(const T* from, std::int64_t from_stride, T* to,
                                                   std::int64_t to_stride, std::int64_t columns) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  constexpr auto lanes = std::make_integer_sequence<int, W>{};
  V rows[W];
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) rows[i] = load<V>(from + i * from_stride);
#pragma GCC unroll 4
  for (int step = 1; step < W; step *= 2) {
    V next[W];
#pragma GCC unroll 8
    for (int i = 0; i < W / 2; ++i) {
      next[2 * i] = interleaved<false>(rows[i], rows[i + W / 2], lanes);
      next[2 * i + 1] = interleaved<true>(rows[i], rows[i + W / 2], lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) {
    if (i < columns) store<V>(to + i * to_stride, rows[i]);
  }
}

// to[d, r] = from[r, d] for the keys of a tile. Rows of `to` are kKeyTile apart; their columns from
// `rows` to the next multiple of W become zero.
template <class T>
void pack_transposed(std::int64_t rows, std::int64_t width, const T* from, std::int64_t stride,
                     T* to) {
  constexpr std::int64_t W = kLanes<T>;
  for (std::int64_t r = 0; r < rows; r += W) {
    for (std::int64_t d = 0; d < width; d += W) {
      const std::int64_t valid_rows = std::min(W, rows - r), columns = std::min(W, width - d);
      const T* block = from + r * stride + d;
      if (valid_rows == W && columns == W) {
        transpose_block<T>(block, stride, to + d * kKeyTile + r, kKeyTile, W);
        continue;
      }
      T padded_block[W * W] = {};
      for (std::int64_t i = 0; i < valid_rows; ++i)
        std::copy_n(block + i * stride, columns, padded_block + i * W);
      transpose_block<T>(padded_block, W, to + d * kKeyTile + r, kKeyTile, columns);
    }
  }
}

// Returns the bias with `starts` set, as bucket_of() needs it.
template <class T>
ScoreBias<T> with_starts(CpuContext& ctx, ScoreBias<T> bias) {
  if (bias.kind != ScoreBias<T>::Kind::buckets || bias.clipped) return bias;
  bias.starts = cached_bucket_starts(ctx, bias.buckets, bias.max_distance, bias.bidirectional);
  return bias;
}
template <class Arguments>
Arguments with_starts(CpuContext& ctx, Arguments p) {
  p.in.bias = with_starts(ctx, p.in.bias);
  return p;
}

// The table's row for the relative position key - query.
template <class T>
int bucket_of(const ScoreBias<T>& bias, std::int64_t relative) {
  if (bias.clipped) return clipped_bucket(relative, bias.max_distance, bias.bidirectional);
  const int per_direction = bias.bidirectional ? bias.buckets / 2 : bias.buckets;
  const std::int64_t distance =
      bias.bidirectional ? std::abs(relative) : std::max<std::int64_t>(-relative, 0);
  const auto found =
      std::upper_bound(bias.starts, bias.starts + per_direction, distance) - bias.starts - 1;
  return static_cast<int>(found) + (bias.bidirectional && relative > 0 ? per_direction : 0);
}

// The biases of a tile. They depend only on key - query, so one array serves every row.
template <class T>
class BiasByDistance {
 public:
  static constexpr std::int64_t kLength = kQueryTile + kKeyTile;

  // The tile starts at query position `query` and key `key`.
  BiasByDistance(const AttentionInputs<T>& in, int head, std::int64_t query, std::int64_t key)
      : active_(in.bias.kind != ScoreBias<T>::Kind::none) {
    if (!active_) return;
    for (std::int64_t n = 0; n < kLength; ++n) {
      const std::int64_t relative = key - query + n - (kQueryTile - 1);
      if (in.bias.kind == ScoreBias<T>::Kind::slopes) {
        biases_[n] = -in.bias.slopes[head] * static_cast<T>(relative < 0 ? -relative : relative);
      } else {
        biases_[n] = in.bias.table[bucket_of(in.bias, relative) * in.heads + head];
      }
    }
  }

  bool active() const { return active_; }
  // The biases of row i of the tile, one per key.
  const T* row(std::int64_t i) const { return biases_ + kQueryTile - 1 - i; }

 private:
  bool active_;
  T biases_[kLength] = {};
};

// Dropout factors of a tile of weights, row after row.
template <class T>
class DropoutTile {
 public:
  static constexpr std::int64_t kElements = kQueryTile * kKeyTile + kFactorBlock;

  DropoutTile(const AttentionInputs<T>& in, T* buffer)
      : active_(in.dropout.active()), buffer_(buffer), generator_(in.dropout) {}

  // Draws the factors of `rows` queries from `query` on and `columns` keys from `key` on.
  void draw(const AttentionInputs<T>& in, const HeadView<T>& view, std::int64_t query,
            std::int64_t rows, std::int64_t key, std::int64_t columns) {
    if (!active_) return;
    shift_ = columns > 32 ? 3 : columns > 16 ? 2 : columns > 8 ? 1 : 0;
    const std::uint32_t column =
        (static_cast<std::uint32_t>(view.head) << 23) + static_cast<std::uint32_t>(key);
    generator_.fill_tile(static_cast<std::uint32_t>(in.sentence[view.sentence]),
                         static_cast<std::uint32_t>(query), rows, column, shift_, buffer_);
  }
  bool active() const { return active_; }
  const T* row(std::int64_t r) const { return buffer_ + (r << (shift_ + 3)); }

 private:
  bool active_;
  T* buffer_;
  int shift_ = 0;
  DropoutGenerator<T> generator_;
};

// The vector 0, 1, 2, …
template <class T>
[[gnu::always_inline]] inline Vec<Integer<T>> lane_numbers() {
  Vec<Integer<T>> numbers;
  for (int i = 0; i < kLanes<T>; ++i) numbers[i] = static_cast<Integer<T>>(i);
  return numbers;
}

// Keeps the first `count` lanes of v and sets the others to `other`.
template <class T>
[[gnu::always_inline]] inline Vec<T> first_lanes(Vec<T> v, std::int64_t count, T other) {
  const auto limit = static_cast<Integer<T>>(std::clamp<std::int64_t>(count, 0, kLanes<T>));
  return lane_numbers<T>() < limit ? v : splat<Vec<T>>(other);
}

}  // namespace
}  // namespace nunchi::kernels
