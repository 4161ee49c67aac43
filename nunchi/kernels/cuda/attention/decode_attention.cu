// A warp takes one row and head. A group of its lanes takes one key at a time, each lane eight
// neighbouring columns (of each 256, if heads are wider), and each group has its own online
// softmax; they are merged after the last key. A block's warps take neighbouring rows of one head,
// which read the same keys if they are hypotheses of one sentence; with few rows and many keys,
// several warps share a row.
//
// A step has few keys, so dependent loads dominate: the slots of the first keys are loaded before
// the number of keys is known, and all keys of a round are loaded at once.
#include "nunchi/kernels/decode_attention.h"

#include "nunchi/kernels/cuda/attention/attention_exact.h"
#include "nunchi/kernels/cuda/attention/decode_columns.h"
#include "nunchi/kernels/cuda/attention/score_bias.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Chunks of eight columns per lane, for heads of more than 256 columns.
constexpr int kManyChunks = 4;
static_assert(kManyChunks * 8 * kWarp >= kMaxHeadWidth);
// Keys that a group of lanes loads together.
template <class N, bool Aligned, int Chunks>
constexpr int kKeysPerGroup = Chunks > 1       ? 1
                              : !Aligned       ? 2
                              : sizeof(N) == 2 ? 8
                                               : 4;

// Values computed for a launch.
template <class N>
struct Launch {
  int group, width;  // query heads per key/value head, columns of a head
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
    decode_kernel(const DecodeAttention<N> p, const Launch<N> launch) {
  constexpr int kGroups = kWarp / Lanes, kKeys = kKeysPerGroup<N, Aligned, Chunks>;
  static_assert(Chunks == 1 || Lanes == kWarp);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int column = lane % Lanes * 8;
  // Neighbouring blocks take the heads of the same rows.
  const auto heads = static_cast<unsigned>(p.heads);
  const int head = static_cast<int>(blockIdx.x % heads), kv_head = head / launch.group;
  const std::int64_t row =
      (blockIdx.x / heads * kWarps + static_cast<unsigned>(warp)) / WarpsPerRow;
  if (row >= p.rows.capacity) return;  // all warps of a shared row return together
  // Key u of this group in the round that begins with key `first`.
  const auto key_of = [&](int first, int u) {
    return first + ((warp % WarpsPerRow) * kKeys + u) * kGroups + lane / Lanes;
  };
  const std::int64_t kv_column = std::int64_t{kv_head} * launch.width;
  const bool has_newest = p.newest.k != nullptr;
  const std::int32_t* slot = p.keys.slot;
  const bool slots_by_row = slot != nullptr && p.keys.hypothesis == nullptr;
  if (slots_by_row) slot += row * p.keys.slot_stride;
  wait_for_previous_kernel();
  // These loads do not wait for each other: rows past the count hold valid indices too.
  const int length = p.keys.length[row];
  const bool real = row < real_rows(p.rows);
  const std::int64_t new_slot = has_newest ? p.newest.slot[row] : 0;
  std::int64_t first_slot = slot == nullptr ? p.keys.begin[row] : 0;
  std::int32_t slots[kKeys];
#pragma unroll
  for (int u = 0; u < kKeys; ++u) {
    const int key = key_of(0, u);
    slots[u] = slots_by_row && key < p.keys.slot_stride ? slot[key] : 0;
  }
  const N *from_k = p.newest.k + row * p.newest.k_stride,
          *from_v = p.newest.v + row * p.newest.v_stride;
  Columns<N, Aligned, Chunks> query;
  query.load(p.q + row * p.q_stride + std::int64_t{head} * launch.width, column, launch.width);
  const float slope = Biased && launch.slopes != nullptr ? launch.slopes[head] : 0.0f;
  const int keys = real ? length : 0;
  if (slot != nullptr && !slots_by_row && real) {
    slot += p.keys.hypothesis[row] * p.keys.slot_stride;
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      if (key_of(0, u) < keys) slots[u] = slot[key_of(0, u)];
    }
  }
  float q[Chunks][8];
  query.get(q);

  constexpr int kStep = kGroups * kKeys * WarpsPerRow;  // keys per round
  Softmax<Chunks> softmax;
  for (int first = 0; first < keys; first += kStep) {
    Columns<N, Aligned, Chunks> k[kKeys], v[kKeys];
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const int key = key_of(first, u);
      if (key >= keys) continue;
      // The newest key is not in the cache yet.
      const bool newest = has_newest && key == keys - 1;
      const std::int64_t key_row = slot != nullptr ? std::int64_t{slots[u]} : first_slot + key;
      k[u].load((newest ? from_k : row_at(p.k, p.k_stride, key_row)) + kv_column, column,
                launch.width);
      v[u].load((newest ? from_v : row_at(p.v, p.v_stride, key_row)) + kv_column, column,
                launch.width);
    }
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const int key = key_of(first + kStep, u);
      if (slot != nullptr && key < keys) slots[u] = slot[key];
    }
    float score[kKeys], highest = softmax.top;
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
      for (int lanes = Lanes / 2; lanes > 0; lanes /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, lanes);
      }
      const int key = key_of(first, u), distance = keys - 1 - key;
      score[u] = kLowest;
      if (key < keys) {
        score[u] = sum * launch.scale;
        if constexpr (Biased) {
          score[u] -= slope * static_cast<float>(distance);
          if (launch.table != nullptr) {
            score[u] += to_float(launch.table[launch.bounds.bucket_of(-distance) * p.heads + head]);
          }
        }
      }
      highest = fmaxf(highest, score[u]);
    }
    // A group may have had no key so far, so that there is no highest score. fmaxf ignores a NaN.
    const float base = highest == kLowest ? 0.0f : highest;
    softmax.rescale_to(base);
    softmax.top = highest;
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const float weight = exponential<N>(score[u] - base);
      float y[Chunks][8];
      v[u].get(y);
      softmax.total += weight;
      softmax.for_sums([&](float& sum, int c, int i) { sum += weight * y[c][i]; });
    }
  }
  // One head of each key/value group writes the newest key and value to the cache.
  const bool writes_newest = has_newest && real && head % launch.group == 0 && lane < Lanes;
  Columns<N, Aligned, Chunks> newest_k, newest_v;
  if (writes_newest) {
    newest_k.load(from_k + kv_column, column, launch.width);
    newest_v.load(from_v + kv_column, column, launch.width);
  }

  // Merges the groups of the warp, then the warps.
  const float highest = warp_max(softmax.top);
  softmax.rescale_to(highest);
#pragma unroll
  for (int lanes = Lanes; lanes < kWarp; lanes *= 2) {
    Softmax<Chunks> other;
    other.total = __shfl_xor_sync(kAllLanes, softmax.total, lanes);
    other.for_sums([&](float& sum, int c, int i) {
      sum = __shfl_xor_sync(kAllLanes, softmax.sums[c][i], lanes);
    });
    softmax.add(other);
  }
  if constexpr (WarpsPerRow > 1) {
    constexpr int kValues = 2 + 8 * Chunks;
    __shared__ float partials[kWarps][kValues][Lanes];
    if (lane < Lanes) {
      partials[warp][0][lane] = softmax.top;
      partials[warp][1][lane] = softmax.total;
      softmax.for_sums([&](float sum, int c, int i) { partials[warp][2 + 8 * c + i][lane] = sum; });
    }
    __syncthreads();
    if (warp > 0 || lane >= Lanes) return;
    float top = kLowest;
#pragma unroll
    for (int w = 0; w < WarpsPerRow; ++w) top = fmaxf(top, partials[w][0][lane]);
    softmax = Softmax<Chunks>{};
#pragma unroll
    for (int w = 0; w < WarpsPerRow; ++w) {
      Softmax<Chunks> partial;
      partial.top = partials[w][0][lane];
      partial.total = partials[w][1][lane];
      partial.for_sums([&](float& sum, int c, int i) { sum = partials[w][2 + 8 * c + i][lane]; });
      partial.rescale_to(top);
      softmax.add(partial);
    }
  }
  if (lane >= Lanes || column >= launch.width) return;
  if (writes_newest) {
    newest_k.store(p.newest.to_k + new_slot * p.k_stride + kv_column, column, launch.width);
    newest_v.store(p.newest.to_v + new_slot * p.v_stride + kv_column, column, launch.width);
  }
  const float inverse = softmax.total > 0 ? 1 / softmax.total : 0.0f;
  softmax.for_sums([inverse](float& sum, int, int) { sum *= inverse; });
  N* out = p.out + row * p.out_stride + std::int64_t{head} * launch.width;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int first = column + c * 8 * kWarp;
    if constexpr (Aligned) {
      if (first < launch.width) store8(out + first, softmax.sums[c]);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (first + i < launch.width) out[first + i] = from_float<N>(softmax.sums[c][i]);
      }
    }
  }
}

template <int Lanes, bool Aligned, class N>
void launch_kernel(CudaContext& ctx, const DecodeAttention<N>& p, const Launch<N>& launch,
                   bool share_rows) {
  const auto launch_with = [&]<int WarpsPerRow, bool Biased>() {
    launch_overlapped(
        ctx, "decode_attention", decode_kernel<N, Lanes, 1, Aligned, WarpsPerRow, Biased>,
        {blocks_for(p.rows.capacity * WarpsPerRow, kWarps) * static_cast<unsigned>(p.heads),
         kThreads},
        p, launch);
  };
  const bool biased = launch.slopes != nullptr || launch.table != nullptr;
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
void launch_many_columns(CudaContext& ctx, const DecodeAttention<N>& p, const Launch<N>& launch) {
  const Grid grid{blocks_for(p.rows.capacity, kWarps) * static_cast<unsigned>(p.heads), kThreads};
  const auto launch_with = [&]<bool Biased>() {
    launch_overlapped(ctx, "decode_attention",
                      decode_kernel<N, kWarp, kManyChunks, Aligned, 1, Biased>, grid, p, launch);
  };
  if (launch.slopes != nullptr || launch.table != nullptr) {
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
  const DecodeAttention<N> q = native(p);
  Launch<N> launch{.group = p.heads / p.kv_heads,
                   .width = static_cast<int>(p.head_width),
                   .scale = static_cast<float>(p.scale)};
  if (p.bias.kind == Kind::slopes) launch.slopes = p.bias.slopes;
  if (p.bias.kind == Kind::buckets) {
    launch.table = q.bias.table;
    launch.bounds = bucket_bounds(ctx, p.bias);
  }
  const bool aligned = p.head_width % 8 == 0 && rows_are_aligned(q.q, p.q_stride) &&
                       rows_are_aligned(q.k, p.k_stride) && rows_are_aligned(q.v, p.v_stride) &&
                       rows_are_aligned(q.out, p.out_stride) &&
                       (q.newest.k == nullptr || (rows_are_aligned(q.newest.k, p.newest.k_stride) &&
                                                  rows_are_aligned(q.newest.v, p.newest.v_stride)));
  // Sharing rows changes bits and depends on the number of rows, so a deterministic context never
  // does it.
  constexpr std::int64_t kMinKeysToShare = 96;
  const bool share_rows = !ctx.deterministic() && p.max_keys >= kMinKeysToShare &&
                          p.rows.capacity * p.heads < ctx.multiprocessors() * 8;
  if (p.head_width > 8 * kWarp) {
    aligned ? launch_many_columns<true>(ctx, q, launch)
            : launch_many_columns<false>(ctx, q, launch);
  } else if (!aligned) {
    launch_kernel<32, false>(ctx, q, launch, share_rows);
  } else if (p.head_width <= 32) {
    launch_kernel<4, true>(ctx, q, launch, share_rows);
  } else if (p.head_width <= 64) {
    launch_kernel<8, true>(ctx, q, launch, share_rows);
  } else if (p.head_width <= 128) {
    launch_kernel<16, true>(ctx, q, launch, share_rows);
  } else {
    launch_kernel<32, true>(ctx, q, launch, share_rows);
  }
}
template void compute<Cuda>(CudaContext&, const DecodeAttention<float>&);
template void compute<Cuda>(CudaContext&, const DecodeAttention<BFloat16>&);

}  // namespace nunchi::kernels
