// What the attention kernels share on the GPU: their inputs, who works on what, dropout's bits.
//
// A warp takes a tile of neighbouring queries (or keys) of one sentence. Tiles are numbered over
// the whole batch without a list: sentence b's begin at offsets[b] / rows + b, which leaves room
// for each sentence's last, partial tile, and at most one number in a sentence goes unused. What
// comes behind the last sentence are the spare rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cuda/attention/score_bias.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

template <class N>
struct Heads {
  int sentences, heads, group, width;  // B, H, heads of one key/value head, D
  const N *q, *k, *v;
  std::int64_t q_stride, k_stride, v_stride;
  const std::int32_t *q_offsets, *k_begin, *k_length, *sentence;
  bool causal;
  bool wide;  // rows of q, k and v can be read eight elements at a time
  float scale;
  BiasTerms bias;
  DropoutDraws draws;
};

template <class T>
Heads<Native<T>> heads_of(const AttentionInputs<T>& in, const BiasLine<T>& bias) {
  return {.sentences = static_cast<int>(in.sentences),
          .heads = in.heads,
          .group = in.heads / in.kv_heads,
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
          .wide = in.head_width % 8 == 0 && wide(native(in.q), in.q_stride) &&
                  wide(native(in.k), in.k_stride) && wide(native(in.v), in.v_stride),
          .scale = static_cast<float>(in.scale),
          .bias = bias.terms(),
          .draws = DropoutDraws(in.dropout)};
}

template <class N>
struct Forward {
  Heads<N> in;
  Rows rows;
  N* out;
  std::int64_t out_stride;
  float* log_sum;
  bool short_apart = false;  // short sentences have a kernel of their own
};

void start_mma_forward(CudaContext& ctx, const Forward<__nv_bfloat16>& p, std::int64_t max_queries);

// On the tensor cores a warp takes one tile of 16 queries (or keys), or two: of long sentences,
// whose ends leave little of a block unused, and heads that are not too wide for its registers.
constexpr std::int64_t kLongSentence = 256;
inline int tiles_each(int width, std::int64_t longest) {
  return width < 128 && longest >= kLongSentence ? 2 : 1;
}

// What comes between a product and its weight: nothing but a positive scale, or biases and dropout
// too. Where there is nothing else, kernels are compiled without it.
enum class Between : std::uint8_t { scale, all };

template <class N>
Between between(const Heads<N>& in) {
  const bool bias = in.bias.slopes != nullptr || in.bias.line != nullptr;
  return bias || in.draws.threshold > 0 || !(in.scale > 0) ? Between::all : Between::scale;
}

// f.operator()<D, M, B>() with a head's width, a warp's tiles and what comes between. Sentences
// that are not long do without a version of their own.
template <class N, class F>
void with_tiles(const Heads<N>& in, int tiles, F&& f) {
  using enum Between;
  const bool plain = between(in) == scale;
  if (in.width == 128) {
    return plain ? f.template operator()<128, 1, scale>() : f.template operator()<128, 1, all>();
  }
  const auto of_width = [&]<int D>() {
    if (tiles == 1) return f.template operator()<D, 1, all>();
    plain ? f.template operator()<D, 2, scale>() : f.template operator()<D, 2, all>();
  };
  in.width == 32 ? of_width.template operator()<32>() : of_width.template operator()<64>();
}

// A short sentence has at most so many queries and keys.
constexpr int kShort = 64;

// One sentence's queries and keys.
struct Span {
  int queries, keys;
  int first_query, first_key;  // rows of the batch
  int shift;                   // query i stands at key position i + shift
  bool causal;

  template <class N>
  __device__ Span(const Heads<N>& in, int sentence)
      : queries(in.q_offsets[sentence + 1] - in.q_offsets[sentence]),
        keys(in.k_length[sentence]),
        first_query(in.q_offsets[sentence]),
        first_key(in.k_begin[sentence]),
        shift(in.causal ? keys - queries : 0),
        causal(in.causal) {}
  __device__ bool is_short() const { return queries <= kShort && keys <= kShort; }
  // How many keys query i may see.
  __device__ int visible(int i) const { return causal ? min(max(i + shift + 1, 0), keys) : keys; }
};

// Columns of the batch's matrices where a head begins.
template <class N>
__device__ const N* head_of(const N* matrix, std::int64_t stride, int row, int head, int width) {
  return matrix + row * stride + std::int64_t{head} * width;
}

// The last b of [0, count) with start(b) <= slot, where start(0) <= slot and start never falls. All
// lanes of a warp look together.
template <class Start>
__device__ int last_start(int count, int slot, Start start) {
  const int lane = threadIdx.x % kWarp;
  int low = 0, end = count;
  while (end - low > 1) {
    const int step = (end - low + kWarp - 1) / kWarp, probe = low + lane * step;
    const unsigned begun =
        __ballot_sync(kAllLanes, lane == 0 || (probe < end && start(probe) <= slot));
    low += (__popc(begun) - 1) * step;
    end = min(low + step, end);
  }
  return low;
}

// `first` is the tile's first row in its sentence. The spare rows are the sentence behind the last.
struct Tile {
  int sentence, first;
};

inline std::int64_t query_slots(std::int64_t capacity, std::int64_t sentences, int rows) {
  return capacity / rows + sentences + 1;
}

template <int Rows>
__device__ Tile query_tile(const std::int32_t* offsets, int sentences, int slot) {
  const auto start = [offsets](int b) { return offsets[b] / Rows + b; };
  const int b = last_start(sentences + 1, slot, start);
  return {b, (slot - start(b)) * Rows};
}

// The order in which blocks take slots. Of causal sentences that are as long as the longest, the
// tiles with the most to do come first, those of all sentences: what is left for the end is short.
// Of others it is an order like any.
class SlotOrder {
 public:
  enum class Most : std::uint8_t { equal, first, last };  // where those tiles stand in a sentence

  // `each`: slots of the longest sentence.
  SlotOrder(std::int64_t slots, std::int64_t each, Most most)
      : slots_(static_cast<int>(slots)),
        each_(most == Most::equal ? 1 : static_cast<int>(std::max<std::int64_t>(each, 1))),
        columns_(static_cast<int>(parts(slots, each_))),
        backwards_(most == Most::last) {}

  unsigned blocks() const { return static_cast<unsigned>(columns_ * each_); }
  // False where the block has none.
  __device__ bool take(int block, int& slot) const {
    const int level = block / columns_;
    slot = block % columns_ * each_ + (backwards_ ? each_ - 1 - level : level);
    return slot < slots_;
  }

 private:
  int slots_, each_, columns_;
  bool backwards_;
};

// Slots of a sentence's queries, which begin in the middle of a tile's rows.
template <class N>
SlotOrder query_order(const Heads<N>& in, std::int64_t slots, std::int64_t longest, int rows) {
  return {slots, longest / rows + 1, in.causal ? SlotOrder::Most::last : SlotOrder::Most::equal};
}
template <class N>
SlotOrder key_order(const Heads<N>& in, std::int64_t slots, std::int64_t longest, int rows) {
  return {slots, parts(longest, rows), in.causal ? SlotOrder::Most::first : SlotOrder::Most::equal};
}

// Keys stand anywhere, so theirs are counted: starts[b] is the number of tiles before sentence b's.
inline std::int64_t key_slots(std::int64_t capacity, std::int64_t sentences, int rows) {
  return parts(capacity, rows) + sentences + 1;
}

// One warp writes starts [B + 1].
__device__ inline void count_key_tiles(int rows, const std::int32_t* k_length, int sentences,
                                       int* starts) {
  const int lane = threadIdx.x % kWarp;
  int before = 0;
#pragma unroll 4
  for (int b = lane; b - lane < sentences; b += kWarp) {
    int sum = b < sentences ? (k_length[b] + rows - 1) / rows : 0;
#pragma unroll
    for (int lanes = 1; lanes < kWarp; lanes *= 2) {
      const int left = __shfl_up_sync(kAllLanes, sum, lanes);
      if (lane >= lanes) sum += left;
    }
    if (b < sentences) starts[b + 1] = before + sum;
    before += __shfl_sync(kAllLanes, sum, kWarp - 1);
  }
  if (lane == 0) starts[0] = 0;
}

template <int Rows>
__device__ Tile key_tile(const int* starts, int sentences, int slot) {
  const int b = last_start(sentences + 1, slot, [starts](int i) { return starts[i]; });
  return {b, (slot - starts[b]) * Rows};
}

// Writes zeros to columns [0, width) of the rows from `first` (at the count or behind it) to `end`.
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

// Which of eight neighbouring keys stay, from bit 0 on.
struct KeepBits {
  philox::Key key{};
  std::uint32_t place = 0, threshold = 0, sentence = 0, head = 0;

  template <class N>
  __device__ KeepBits(const Heads<N>& in, int b, int h)
      : place(in.draws.place),
        threshold(in.draws.threshold << 16),
        head(static_cast<std::uint32_t>(h) << 20) {
    if (in.draws.threshold == 0) return;
    key = philox::key_of(*in.draws.key);
    sentence = static_cast<std::uint32_t>(in.sentence[b]);
  }
  // `first` is a multiple of eight.
  __device__ std::uint32_t of(int query, int first) const {
    const philox::Words words = philox::bits({head + static_cast<std::uint32_t>(first) / 8,
                                              static_cast<std::uint32_t>(query), sentence, place},
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
