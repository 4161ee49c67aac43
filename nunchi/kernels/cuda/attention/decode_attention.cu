// A warp takes one row and head. A group of its lanes computes the score of a key, each lane eight
// adjacent columns (in heads of more than 256 columns, eight of every 256). Each group has its own
// online softmax; the groups are merged after the last key. A block's warps take neighbouring rows
// of one head, which read the same keys if they are hypotheses of one sentence; with few rows and
// many keys, several warps share a row.
//
// A step has few keys, so dependent loads dominate: the slots of the first keys are loaded before
// the number of keys is known, and all keys of a round are loaded at once.
#include "nunchi/kernels/decode_attention.h"

#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/attention/decode_columns.h"
#include "nunchi/kernels/cuda/attention/score_bias.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Chunks of eight columns per lane in heads of more than 256 columns.
constexpr int kWideHeadChunks = 4;
static_assert(kWideHeadChunks * 8 * kWarp >= kMaxHeadWidth);
// Keys that a group of lanes loads together. Aligned: all rows can be read eight elements at a
// time.
template <class N, bool Aligned, int Chunks>
constexpr int kKeysPerGroup = Chunks > 1       ? 1
                              : !Aligned       ? 2
                              : sizeof(N) == 2 ? 8
                                               : 4;

// Kernel arguments computed from those of DecodeAttention.
template <class N>
struct DerivedArguments {
  int heads_per_kv_head, width;  // width: columns of a head
  float scale;
  const float* slopes = nullptr;  // the bias's slopes; null: none
  const N* table = nullptr;       // the bias's table of buckets; null: none
  BucketBounds bounds{};
};

// Lanes: lanes that share a key, each with Chunks times eight columns. WarpsPerRow: warps that
// share a row and head.
template <class N, int Lanes, int Chunks, bool Aligned, int WarpsPerRow, bool Biased>
__global__ void __launch_bounds__(kThreads, Chunks > 1         ? 2
                                            : WarpsPerRow == 1 ? 4
                                                               : 3)
    decode_kernel(const DecodeAttention<N> p, const DerivedArguments<N> derived) {
  constexpr int kGroups = kWarp / Lanes, kKeys = kKeysPerGroup<N, Aligned, Chunks>;
  static_assert(Chunks == 1 || Lanes == kWarp);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int column = lane % Lanes * 8;
  // Neighbouring blocks take the heads of the same rows.
  const auto heads = static_cast<unsigned>(p.heads);
  const int head = static_cast<int>(blockIdx.x % heads), kv_head = head / derived.heads_per_kv_head;
  const std::int64_t row =
      (blockIdx.x / heads * kWarps + static_cast<unsigned>(warp)) / WarpsPerRow;
  if (row >= p.rows.capacity) return;  // all warps of a shared row return together
  // Key u of this group in the round that begins with key `first`.
  const auto key_of = [&](int first, int u) {
    return first + ((warp % WarpsPerRow) * kKeys + u) * kGroups + lane / Lanes;
  };
  const std::int64_t kv_column = std::int64_t{kv_head} * derived.width;
  const bool has_newest = p.newest.k != nullptr;
  const std::int32_t* slot = p.keys.slot;
  // Without an array of hypotheses, row r is hypothesis r.
  const bool row_is_hypothesis = slot != nullptr && p.keys.hypothesis == nullptr;
  if (row_is_hypothesis) slot += row * p.keys.slot_stride;
  wait_for_previous_kernel();
  // These loads are independent. The arrays of rows past the count can be read as well; their
  // values are not used.
  const int length = p.keys.length[row];
  const bool real = row < real_rows(p.rows);
  const std::int64_t new_slot = has_newest ? p.newest.slot[row] : 0;
  std::int64_t first_key_row = slot == nullptr ? p.keys.begin[row] : 0;
  std::int32_t slots[kKeys];
#pragma unroll
  for (int u = 0; u < kKeys; ++u) {
    const int key = key_of(0, u);
    slots[u] = row_is_hypothesis && key < p.keys.slot_stride ? slot[key] : 0;
  }
  const N *from_k = p.newest.k + row * p.newest.k_stride,
          *from_v = p.newest.v + row * p.newest.v_stride;
  Columns<N, Aligned, Chunks> query;
  query.load(p.q + row * p.q_stride + std::int64_t{head} * derived.width, column, derived.width);
  const float slope = Biased && derived.slopes != nullptr ? derived.slopes[head] : 0.0f;
  const int keys = real ? length : 0;
  if (slot != nullptr && !row_is_hypothesis && real) {
    slot += p.keys.hypothesis[row] * p.keys.slot_stride;
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      if (key_of(0, u) < keys) slots[u] = slot[key_of(0, u)];
    }
  }
  float q[Chunks][8];
  query.get(q);

  constexpr int kKeysPerRound = kGroups * kKeys * WarpsPerRow;  // keys per round
  Softmax<Chunks> softmax;
  for (int first = 0; first < keys; first += kKeysPerRound) {
    Columns<N, Aligned, Chunks> k[kKeys], v[kKeys];
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const int key = key_of(first, u);
      if (key >= keys) continue;
      // The newest key is not in the cache yet.
      const bool newest = has_newest && key == keys - 1;
      const std::int64_t key_row = slot != nullptr ? std::int64_t{slots[u]} : first_key_row + key;
      k[u].load((newest ? from_k : row_at(p.k, p.k_stride, key_row)) + kv_column, column,
                derived.width);
      v[u].load((newest ? from_v : row_at(p.v, p.v_stride, key_row)) + kv_column, column,
                derived.width);
    }
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const int key = key_of(first + kKeysPerRound, u);
      if (slot != nullptr && key < keys) slots[u] = slot[key];
    }
    float score[kKeys], new_max = softmax.running_max;
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      float x[Chunks][8], sum = 0;
      k[u].get(x);
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += q[c][i] * x[c][i];
      }
#pragma unroll
      for (int lane_mask = Lanes / 2; lane_mask > 0; lane_mask /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, lane_mask);
      }
      const int key = key_of(first, u), distance = keys - 1 - key;
      score[u] = kLowest;
      if (key < keys) {
        score[u] = sum * derived.scale;
        if constexpr (Biased) {
          score[u] -= slope * static_cast<float>(distance);
          if (derived.table != nullptr) {
            score[u] +=
                to_float(derived.table[derived.bounds.bucket_of(-distance) * p.heads + head]);
          }
        }
      }
      new_max = fmaxf(new_max, score[u]);
    }
    // new_max is -inf if the group has had no key yet or all scores are NaN (fmaxf ignores NaN). A
    // base of 0 then avoids -inf - -inf.
    const float base = new_max == kLowest ? 0.0f : new_max;
    softmax.rescale_to(base);
    softmax.running_max = new_max;
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const float weight = exponential<N>(score[u] - base);
      float y[Chunks][8];
      v[u].get(y);
      softmax.total += weight;
      softmax.for_sums([&](float& sum, int c, int i) { sum += weight * y[c][i]; });
    }
  }
  // One of the heads that share a key/value head writes the newest key and value to the cache.
  const bool writes_newest =
      has_newest && real && head % derived.heads_per_kv_head == 0 && lane < Lanes;
  Columns<N, Aligned, Chunks> newest_k, newest_v;
  if (writes_newest) {
    newest_k.load(from_k + kv_column, column, derived.width);
    newest_v.load(from_v + kv_column, column, derived.width);
  }

  // Merges the groups of the warp, then the warps.
  softmax.rescale_to(warp_max(softmax.running_max));
#pragma unroll
  for (int lane_mask = Lanes; lane_mask < kWarp; lane_mask *= 2) {
    Softmax<Chunks> other;
    other.total = __shfl_xor_sync(kAllLanes, softmax.total, lane_mask);
    other.for_sums([&](float& sum, int c, int i) {
      sum = __shfl_xor_sync(kAllLanes, softmax.sums[c][i], lane_mask);
    });
    softmax.add(other);
  }
  if constexpr (WarpsPerRow > 1) {
    constexpr int kValues = 2 + 8 * Chunks;
    __shared__ float partials[kWarps][kValues][Lanes];
    if (lane < Lanes) {
      partials[warp][0][lane] = softmax.running_max;
      partials[warp][1][lane] = softmax.total;
      softmax.for_sums([&](float sum, int c, int i) { partials[warp][2 + 8 * c + i][lane] = sum; });
    }
    __syncthreads();
    if (warp > 0 || lane >= Lanes) return;
    float max_score = kLowest;
#pragma unroll
    for (int w = 0; w < WarpsPerRow; ++w) max_score = fmaxf(max_score, partials[w][0][lane]);
    softmax = Softmax<Chunks>{};
#pragma unroll
    for (int w = 0; w < WarpsPerRow; ++w) {
      Softmax<Chunks> partial;
      partial.running_max = partials[w][0][lane];
      partial.total = partials[w][1][lane];
      partial.for_sums([&](float& sum, int c, int i) { sum = partials[w][2 + 8 * c + i][lane]; });
      partial.rescale_to(max_score);
      softmax.add(partial);
    }
  }
  if (lane >= Lanes || column >= derived.width) return;
  if (writes_newest) {
    newest_k.store(p.newest.to_k + new_slot * p.k_stride + kv_column, column, derived.width);
    newest_v.store(p.newest.to_v + new_slot * p.v_stride + kv_column, column, derived.width);
  }
  const float inverse = softmax.total > 0 ? 1 / softmax.total : 0.0f;
  softmax.for_sums([inverse](float& sum, int, int) { sum *= inverse; });
  N* out = p.out + row * p.out_stride + std::int64_t{head} * derived.width;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int first = column + c * 8 * kWarp;
    if constexpr (Aligned) {
      if (first < derived.width) store8(out + first, softmax.sums[c]);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (first + i < derived.width) out[first + i] = from_float<N>(softmax.sums[c][i]);
      }
    }
  }
}

template <int Lanes, bool Aligned, class N>
void launch_kernel(CudaContext& ctx, const DecodeAttention<N>& p,
                   const DerivedArguments<N>& derived, bool share_rows) {
  const auto launch_with = [&]<int WarpsPerRow, bool Biased>() {
    launch_overlapped(
        ctx, "decode_attention", decode_kernel<N, Lanes, 1, Aligned, WarpsPerRow, Biased>,
        {blocks_for(p.rows.capacity * WarpsPerRow, kWarps) * static_cast<unsigned>(p.heads),
         kThreads},
        p, derived);
  };
  const bool biased = derived.slopes != nullptr || derived.table != nullptr;
  if (share_rows) {
    biased ? launch_with.template operator()<kWarps, true>()
           : launch_with.template operator()<kWarps, false>();
  } else {
    biased ? launch_with.template operator()<1, true>()
           : launch_with.template operator()<1, false>();
  }
}

// Heads of more than 256 columns.
template <bool Aligned, class N>
void launch_wide_heads(CudaContext& ctx, const DecodeAttention<N>& p,
                       const DerivedArguments<N>& derived) {
  const Grid grid{blocks_for(p.rows.capacity, kWarps) * static_cast<unsigned>(p.heads), kThreads};
  const auto launch_with = [&]<bool Biased>() {
    launch_overlapped(ctx, "decode_attention",
                      decode_kernel<N, kWarp, kWideHeadChunks, Aligned, 1, Biased>, grid, p,
                      derived);
  };
  if (derived.slopes != nullptr || derived.table != nullptr) {
    launch_with.template operator()<true>();
  } else {
    launch_with.template operator()<false>();
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const DecodeAttention<T>& p) {
  using N = Native<T>;
  using Kind = typename ScoreBias<T>::Kind;
  if (p.rows.capacity * p.heads == 0) return;
  check_head_width(p.head_width);
  const DecodeAttention<N> arguments = native(p);
  DerivedArguments<N> derived{.heads_per_kv_head = p.heads / p.kv_heads,
                              .width = static_cast<int>(p.head_width),
                              .scale = static_cast<float>(p.scale)};
  if (p.bias.kind == Kind::slopes) derived.slopes = p.bias.slopes;
  if (p.bias.kind == Kind::buckets) {
    derived.table = arguments.bias.table;
    derived.bounds = bucket_bounds(ctx, p.bias);
  }
  const bool aligned =
      p.head_width % 8 == 0 && rows_are_aligned(arguments.q, p.q_stride) &&
      rows_are_aligned(arguments.k, p.k_stride) && rows_are_aligned(arguments.v, p.v_stride) &&
      rows_are_aligned(arguments.out, p.out_stride) &&
      (arguments.newest.k == nullptr || (rows_are_aligned(arguments.newest.k, p.newest.k_stride) &&
                                         rows_are_aligned(arguments.newest.v, p.newest.v_stride)));
  // Sharing rows changes bits and depends on the number of rows, so a deterministic context never
  // does it.
  constexpr std::int64_t kMinKeysToShare = 96;
  const bool share_rows = !ctx.deterministic() && p.max_keys >= kMinKeysToShare &&
                          p.rows.capacity * p.heads < ctx.multiprocessors() * 8;
  if (p.head_width > 8 * kWarp) {
    aligned ? launch_wide_heads<true>(ctx, arguments, derived)
            : launch_wide_heads<false>(ctx, arguments, derived);
  } else if (!aligned) {
    launch_kernel<32, false>(ctx, arguments, derived, share_rows);
  } else if (p.head_width <= 32) {
    launch_kernel<4, true>(ctx, arguments, derived, share_rows);
  } else if (p.head_width <= 64) {
    launch_kernel<8, true>(ctx, arguments, derived, share_rows);
  } else if (p.head_width <= 128) {
    launch_kernel<16, true>(ctx, arguments, derived, share_rows);
  } else {
    launch_kernel<32, true>(ctx, arguments, derived, share_rows);
  }
}
template void compute<Cuda>(CudaContext&, const DecodeAttention<float>&);
template void compute<Cuda>(CudaContext&, const DecodeAttention<BFloat16>&);

}  // namespace nunchi::kernels
