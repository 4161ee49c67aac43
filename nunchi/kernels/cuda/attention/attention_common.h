// Shared by the attention kernels on the GPU: their arguments, the assignment of work to warps,
// dropout masks.
//
// A warp takes a tile of neighbouring queries (or keys) of one sentence. Tiles are numbered over
// the whole batch without a list: sentence b's tiles begin at index offsets[b] / rows + b, which
// leaves an index for each sentence's last, partial tile; at most one index per sentence is unused.
// Tiles after the last sentence cover the spare rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cuda/attention/score_bias.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

template <class N>
struct AttentionArguments {
  int sentences, heads, heads_per_kv_head, width;  // B, H, H / key/value heads, D
  const N *q, *k, *v;
  std::int64_t q_stride, k_stride, v_stride;
  const std::int32_t *q_offsets, *k_begin, *k_length, *sentence;
  bool causal;
  bool aligned;  // rows of q, k and v can be read eight elements at a time
  float scale;
  BiasTerms bias;
  DropoutParameters dropout;
};

template <class T>
AttentionArguments<Native<T>> attention_arguments(const AttentionInputs<T>& in,
                                                  const BiasByDistance<T>& bias) {
  return {.sentences = static_cast<int>(in.sentences),
          .heads = in.heads,
          .heads_per_kv_head = in.heads / in.kv_heads,
          .width = static_cast<int>(in.head_width),
          .q = native(in.q),
          .k = native(in.k),
          .v = native(in.v),
          .q_stride = in.q_stride,
          .k_stride = in.k_stride,
          .v_stride = in.v_stride,
          .q_offsets = in.q_offsets,
          .k_begin = in.k_begin,
          .k_length = in.k_length,
          .sentence = in.sentence,
          .causal = in.causal,
          .aligned = in.head_width % 8 == 0 && rows_are_aligned(native(in.q), in.q_stride) &&
                     rows_are_aligned(native(in.k), in.k_stride) &&
                     rows_are_aligned(native(in.v), in.v_stride),
          .scale = static_cast<float>(in.scale),
          .bias = bias.terms(),
          .dropout = DropoutParameters(in.dropout)};
}

template <class N>
struct ForwardArguments {
  AttentionArguments<N> in;
  Rows rows;
  N* out;
  std::int64_t out_stride;
  float* log_sum;
  bool skip_short_sentences = false;  // another kernel computes them
};

void launch_mma_forward(CudaContext& ctx, const ForwardArguments<__nv_bfloat16>& p,
                        std::int64_t max_queries);

// On the tensor cores a warp takes one tile of 16 queries (or keys), or two if the longest sentence
// is long, so that partial tiles waste little, and the head's width leaves enough registers.
constexpr std::int64_t kLongSentence = 256;
inline int tiles_per_warp(int width, std::int64_t longest) {
  return width < 128 && longest >= kLongSentence ? 2 : 1;
}

// Operations between the product q kᵀ and the weights: only a positive scale, or also a bias,
// dropout or any scale. Kernels with only a positive scale are compiled without the others.
enum class ScoreTerms : std::uint8_t { scale_only, any };

template <class N>
ScoreTerms score_terms(const AttentionArguments<N>& in) {
  const bool bias = in.bias.slopes != nullptr || in.bias.by_distance != nullptr;
  return bias || in.dropout.active() || !(in.scale > 0) ? ScoreTerms::any : ScoreTerms::scale_only;
}

// Calls f.operator()<D, M, Terms>() with the head's width, the tiles per warp and the terms. Heads
// of 32 or 64 columns with one tile per warp always use ScoreTerms::any.
template <class N, class F>
void dispatch_tiles(const AttentionArguments<N>& in, int tiles, F&& f) {
  using enum ScoreTerms;
  const bool plain = score_terms(in) == scale_only;
  if (in.width == 128) {
    return plain ? f.template operator()<128, 1, scale_only>()
                 : f.template operator()<128, 1, any>();
  }
  const auto dispatch_width = [&]<int D>() {
    if (tiles == 1) return f.template operator()<D, 1, any>();
    plain ? f.template operator()<D, 2, scale_only>() : f.template operator()<D, 2, any>();
  };
  in.width == 32 ? dispatch_width.template operator()<32>()
                 : dispatch_width.template operator()<64>();
}

// A short sentence has at most this many queries and keys.
constexpr int kMaxShort = 64;

// One sentence's queries and keys.
struct SentenceSpan {
  int queries, keys;
  int first_query, first_key;  // rows of the batch
  int shift;                   // query i is at key position i + shift
  bool causal;

  template <class N>
  __device__ SentenceSpan(const AttentionArguments<N>& in, int sentence)
      : queries(in.q_offsets[sentence + 1] - in.q_offsets[sentence]),
        keys(in.k_length[sentence]),
        first_query(in.q_offsets[sentence]),
        first_key(in.k_begin[sentence]),
        shift(in.causal ? keys - queries : 0),
        causal(in.causal) {}
  __device__ bool is_short() const { return queries <= kMaxShort && keys <= kMaxShort; }
  // Number of keys that query i may see.
  __device__ int visible_keys(int i) const {
    return causal ? min(max(i + shift + 1, 0), keys) : keys;
  }
};

// Address of a head's columns in a row.
template <class N>
__device__ const N* head_columns(const N* matrix, std::int64_t stride, int row, int head,
                                 int width) {
  return matrix + row * stride + std::int64_t{head} * width;
}

// The last b of [0, count) with start(b) <= tile_index, where start is non-decreasing and start(0)
// <= tile_index. All lanes of a warp search together.
template <class Start>
__device__ int find_last_start(int count, int tile_index, Start start) {
  const int lane = lane_of_thread();
  int low = 0, end = count;
  while (end - low > 1) {
    const int step = (end - low + kWarp - 1) / kWarp, probe = low + lane * step;
    const unsigned reached =
        __ballot_sync(kAllLanes, lane == 0 || (probe < end && start(probe) <= tile_index));
    low += (__popc(reached) - 1) * step;
    end = min(low + step, end);
  }
  return low;
}

// `first` is the tile's first row in its sentence. The spare rows are sentence number B.
struct Tile {
  int sentence, first;

  // Whether the tile covers spare rows, which only have to be cleared.
  __device__ bool is_spare(int sentences) const { return sentence == sentences; }
};

// Upper bound of the number of tiles.
inline std::int64_t max_query_tiles(std::int64_t capacity, std::int64_t sentences, int rows) {
  return capacity / rows + sentences + 1;
}

template <int Rows>
__device__ Tile query_tile(const std::int32_t* offsets, int sentences, int tile_index) {
  const auto start = [offsets](int b) { return offsets[b] / Rows + b; };
  const int b = find_last_start(sentences + 1, tile_index, start);
  return {b, (tile_index - start(b)) * Rows};
}

// The order in which blocks process tiles. In causal batches the tiles with the most keys come
// first, over all sentences, so that light tiles fill the end of the launch. For sentences of
// different lengths the order is only approximate.
class TileOrder {
 public:
  // Which tiles of a sentence have the most keys.
  enum class Heaviest : std::uint8_t { equal, first, last };

  TileOrder(std::int64_t tile_count, std::int64_t tiles_of_longest, Heaviest heaviest)
      : tile_count_(static_cast<int>(tile_count)),
        stride_(heaviest == Heaviest::equal
                    ? 1
                    : static_cast<int>(std::max<std::int64_t>(tiles_of_longest, 1))),
        groups_(static_cast<int>(div_ceil(tile_count, stride_))),
        backwards_(heaviest == Heaviest::last) {}

  unsigned blocks() const { return static_cast<unsigned>(groups_ * stride_); }
  // Sets the index of a block's tile. Returns false if the block has none.
  __device__ bool find_tile(int block, int& tile_index) const {
    const int index = block / groups_;
    tile_index = block % groups_ * stride_ + (backwards_ ? stride_ - 1 - index : index);
    return tile_index < tile_count_;
  }

 private:
  int tile_count_, stride_, groups_;
  bool backwards_;
};

// A sentence's queries may begin in the middle of a tile's rows.
template <class N>
TileOrder query_order(const AttentionArguments<N>& in, std::int64_t tile_count,
                      std::int64_t longest, int rows) {
  return {tile_count, longest / rows + 1,
          in.causal ? TileOrder::Heaviest::last : TileOrder::Heaviest::equal};
}
template <class N>
TileOrder key_order(const AttentionArguments<N>& in, std::int64_t tile_count, std::int64_t longest,
                    int rows) {
  return {tile_count, div_ceil(longest, rows),
          in.causal ? TileOrder::Heaviest::first : TileOrder::Heaviest::equal};
}

// The keys of a sentence may be stored anywhere, so tiles of keys are counted: starts[b] is the
// number of tiles before sentence b.
inline std::int64_t max_key_tiles(std::int64_t capacity, std::int64_t sentences, int rows) {
  return div_ceil(capacity, rows) + sentences + 1;
}

// One warp writes starts [B + 1].
__device__ inline void count_key_tiles(int rows, const std::int32_t* k_length, int sentences,
                                       int* starts) {
  const int lane = lane_of_thread();
  int tiles_before = 0;
#pragma unroll 4
  for (int b = lane; b - lane < sentences; b += kWarp) {
    int sum = b < sentences ? (k_length[b] + rows - 1) / rows : 0;
#pragma unroll
    for (int lanes = 1; lanes < kWarp; lanes *= 2) {
      const int left = __shfl_up_sync(kAllLanes, sum, lanes);
      if (lane >= lanes) sum += left;
    }
    if (b < sentences) starts[b + 1] = tiles_before + sum;
    tiles_before += __shfl_sync(kAllLanes, sum, kWarp - 1);
  }
  if (lane == 0) starts[0] = 0;
}

template <int Rows>
__device__ Tile key_tile(const int* starts, int sentences, int tile_index) {
  const int b = find_last_start(sentences + 1, tile_index, [starts](int i) { return starts[i]; });
  return {b, (tile_index - starts[b]) * Rows};
}

// Writes zeros to columns [0, width) of the rows from `first` (at or past the count) to `end`.
template <class N>
__device__ void clear_rows(N* out, std::int64_t stride, int width, std::int64_t first,
                           std::int64_t end, const Rows& rows) {
  const std::int64_t begin = max(first, real_rows(rows)), last = min(end, rows.capacity);
  for (std::int64_t row = begin; row < last; ++row) {
    for (int d = threadIdx.x % kWarp; d < width; d += kWarp) {
      out[row * stride + d] = from_float<N>(0.0f);
    }
  }
}

// Draws the dropout masks of a sentence and head.
struct DropoutMask {
  philox::Key key{};
  std::uint32_t operation_id = 0, threshold = 0, sentence = 0, head = 0;

  template <class N>
  __device__ DropoutMask(const AttentionArguments<N>& in, int b, int h)
      : operation_id(in.dropout.operation_id),
        threshold(in.dropout.threshold << 16),
        head(static_cast<std::uint32_t>(h) << 20) {
    if (!in.dropout.active()) return;
    key = philox::key_of(*in.dropout.key);
    sentence = static_cast<std::uint32_t>(in.sentence[b]);
  }
  // The mask of the eight keys from `first`, a multiple of eight, on: one bit each, 1 if kept.
  __device__ std::uint32_t mask8(int query, int first) const {
    const philox::Words words =
        philox::bits({head + static_cast<std::uint32_t>(first) / 8,
                      static_cast<std::uint32_t>(query), sentence, operation_id},
                     key);
    std::uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (words[i] << 16 >= threshold) bits |= 1u << (2 * i);
      if (words[i] >= threshold) bits |= 2u << (2 * i);
    }
    return bits;
  }
};

}  // namespace nunchi::kernels
