// A warp takes one row and head: groups of lanes take a key each, a lane eight neighbouring columns
// of it (or of each 256, where heads are wider), and each group keeps a softmax of its own until
// all keys are seen. A block's warps take neighbouring rows of one head, which read the same keys
// where they are hypotheses of one sentence; where rows are few and keys many, they share a row.
//
// A step has few keys, so what counts is how often a load waits for another: where the first keys
// stand is read before it is known how many there are, and all of a round is on its way at once.
#include "nunchi/kernels/decode_attention.h"

#include "nunchi/kernels/cuda/attention/attention_scores.h"
#include "nunchi/kernels/cuda/attention/decode_columns.h"
#include "nunchi/kernels/cuda/attention/score_bias.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
// Columns of a lane for heads that 32 lanes cannot hold with eight each.
constexpr int kManyChunks = 4;
static_assert(kManyChunks * 8 * kWarp >= kWidestHead);
// Keys of a group whose loads are on their way together.
template <class N, bool Wide, int Chunks>
constexpr int kAtOnce = Chunks > 1       ? 1
                        : !Wide          ? 2
                        : sizeof(N) == 2 ? 8
                                         : 4;

template <class N>
struct Decode {
  Rows rows;
  int heads, group, width;
  const N *q, *k, *v;
  std::int64_t q_stride, k_stride, v_stride;
  KeyPlaces keys;
  NewKeys<N> newest;
  float scale;
  const float* slopes;
  const N* table;
  BucketBounds bounds;
  N* out;
  std::int64_t out_stride;
};

// Lanes: how many share a key, each with Chunks times eight columns. Together: how many warps share
// a row and head.
template <class N, int Lanes, int Chunks, bool Wide, int Together, bool Biased>
__global__ void __launch_bounds__(kThreads, Chunks > 1      ? 2
                                            : Together == 1 ? 4
                                                            : 3) decode_kernel(Decode<N> p) {
  constexpr int kGroups = kWarp / Lanes, kEach = kAtOnce<N, Wide, Chunks>;
  static_assert(Chunks == 1 || Lanes == kWarp);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int column = lane % Lanes * 8;
  // The heads of a row stand together.
  const auto heads = static_cast<unsigned>(p.heads);
  const int head = static_cast<int>(blockIdx.x % heads), kv_head = head / p.group;
  const std::int64_t row = (blockIdx.x / heads * kWarps + static_cast<unsigned>(warp)) / Together;
  if (row >= p.rows.capacity) return;  // no warp of a shared row goes alone
  // Key u of this group in the round from `first` on.
  const auto key_of = [&](int first, int u) {
    return first + ((warp % Together) * kEach + u) * kGroups + lane / Lanes;
  };
  const std::int64_t kv_column = std::int64_t{kv_head} * p.width;
  const bool joins = p.newest.k != nullptr;
  const std::int32_t* slot = p.keys.slot;
  const bool own_table = slot != nullptr && p.keys.hypothesis == nullptr;
  if (own_table) slot += row * p.keys.slot_stride;
  begin();
  // Loads that do not wait for one another: a row past the real ones has numbers too.
  const int length = p.keys.length[row];
  const bool real = row < real_rows(p.rows);
  const std::int64_t new_slot = joins ? p.newest.slot[row] : 0;
  std::int64_t first_place = slot == nullptr ? p.keys.begin[row] : 0;
  std::int32_t place[kEach];
#pragma unroll
  for (int u = 0; u < kEach; ++u) {
    const int key = key_of(0, u);
    place[u] = own_table && key < p.keys.slot_stride ? slot[key] : 0;
  }
  const N *from_k = p.newest.k + row * p.newest.k_stride,
          *from_v = p.newest.v + row * p.newest.v_stride;
  Columns<N, Wide, Chunks> query;
  query.load(p.q + row * p.q_stride + std::int64_t{head} * p.width, column, p.width);
  const float slope = Biased && p.slopes != nullptr ? p.slopes[head] : 0.0f;
  const int keys = real ? length : 0;
  if (slot != nullptr && !own_table && real) {
    slot += p.keys.hypothesis[row] * p.keys.slot_stride;
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (key_of(0, u) < keys) place[u] = slot[key_of(0, u)];
    }
  }
  float q[Chunks][8];
  query.get(q);

  constexpr int kStep = kGroups * kEach * Together;  // keys that go by in a round
  Softmax<Chunks> all;
  for (int first = 0; first < keys; first += kStep) {
    Columns<N, Wide, Chunks> k[kEach], v[kEach];
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const int key = key_of(first, u);
      if (key >= keys) continue;
      // The newest is not in the cache yet.
      const bool newest = joins && key == keys - 1;
      const std::int64_t at = slot != nullptr ? std::int64_t{place[u]} : first_place + key;
      k[u].load((newest ? from_k : row_at(p.k, p.k_stride, at)) + kv_column, column, p.width);
      v[u].load((newest ? from_v : row_at(p.v, p.v_stride, at)) + kv_column, column, p.width);
    }
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const int key = key_of(first + kStep, u);
      if (slot != nullptr && key < keys) place[u] = slot[key];
    }
    float score[kEach], highest = all.top;
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
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
        score[u] = sum * p.scale;
        if constexpr (Biased) {
          score[u] -= slope * static_cast<float>(distance);
          if (p.table != nullptr) {
            score[u] += to_float(p.table[p.bounds.bucket_of(-distance) * p.heads + head]);
          }
        }
      }
      highest = fmaxf(highest, score[u]);
    }
    // A group may have no key in this round, and none before it. fmaxf passes over a NaN.
    const float base = highest == kLowest ? 0.0f : highest;
    all.shrink_to(base);
    all.top = highest;
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const float weight = exponential<N>(score[u] - base);
      float y[Chunks][8];
      v[u].get(y);
      all.total += weight;
      all.for_sums([&](float& sum, int c, int i) { sum += weight * y[c][i]; });
    }
  }
  // One head of a group puts the newest key and value into the cache.
  const bool keeps = joins && real && head % p.group == 0 && lane < Lanes;
  Columns<N, Wide, Chunks> newest_k, newest_v;
  if (keeps) {
    newest_k.load(from_k + kv_column, column, p.width);
    newest_v.load(from_v + kv_column, column, p.width);
  }

  // Groups of the warp become one, then the warps.
  const float highest = warp_max(all.top);
  all.shrink_to(highest);
#pragma unroll
  for (int lanes = Lanes; lanes < kWarp; lanes *= 2) {
    Softmax<Chunks> other;
    other.total = __shfl_xor_sync(kAllLanes, all.total, lanes);
    other.for_sums(
        [&](float& sum, int c, int i) { sum = __shfl_xor_sync(kAllLanes, all.sums[c][i], lanes); });
    all.add(other);
  }
  if constexpr (Together > 1) {
    constexpr int kNumbers = 2 + 8 * Chunks;
    __shared__ float parts[kWarps][kNumbers][Lanes];
    if (lane < Lanes) {
      parts[warp][0][lane] = all.top;
      parts[warp][1][lane] = all.total;
      all.for_sums([&](float sum, int c, int i) { parts[warp][2 + 8 * c + i][lane] = sum; });
    }
    __syncthreads();
    if (warp > 0 || lane >= Lanes) return;
    float top = kLowest;
#pragma unroll
    for (int w = 0; w < Together; ++w) top = fmaxf(top, parts[w][0][lane]);
    all = Softmax<Chunks>{};
#pragma unroll
    for (int w = 0; w < Together; ++w) {
      Softmax<Chunks> part;
      part.top = parts[w][0][lane];
      part.total = parts[w][1][lane];
      part.for_sums([&](float& sum, int c, int i) { sum = parts[w][2 + 8 * c + i][lane]; });
      part.shrink_to(top);
      all.add(part);
    }
  }
  if (lane >= Lanes || column >= p.width) return;
  if (keeps) {
    newest_k.store(p.newest.to_k + new_slot * p.k_stride + kv_column, column, p.width);
    newest_v.store(p.newest.to_v + new_slot * p.v_stride + kv_column, column, p.width);
  }
  const float inverse = all.total > 0 ? 1 / all.total : 0.0f;
  all.for_sums([inverse](float& sum, int, int) { sum *= inverse; });
  N* out = p.out + row * p.out_stride + std::int64_t{head} * p.width;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const int at = column + c * 8 * kWarp;
    if constexpr (Wide) {
      if (at < p.width) store8(out + at, all.sums[c]);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (at + i < p.width) out[at + i] = from_float<N>(all.sums[c][i]);
      }
    }
  }
}

template <int Lanes, bool Wide, class N>
void start(CudaContext& ctx, const Decode<N>& p, bool together) {
  const auto start_with = [&]<int Together, bool Biased>() {
    start_early(
        ctx, "decode_attention", decode_kernel<N, Lanes, 1, Wide, Together, Biased>,
        {blocks_for(p.rows.capacity * Together, kWarps) * static_cast<unsigned>(p.heads), kThreads},
        p);
  };
  const bool biased = p.slopes != nullptr || p.table != nullptr;
  if (together) {
    biased ? start_with.template operator()<kWarps, true>()
           : start_with.template operator()<kWarps, false>();
  } else {
    biased ? start_with.template operator()<1, true>() : start_with.template operator()<1, false>();
  }
}

// Heads of more than 256 columns.
template <bool Wide, class N>
void start_many_columns(CudaContext& ctx, const Decode<N>& p) {
  const Grid grid{blocks_for(p.rows.capacity, kWarps) * static_cast<unsigned>(p.heads), kThreads};
  const auto start_with = [&]<bool Biased>() {
    start_early(ctx, "decode_attention", decode_kernel<N, kWarp, kManyChunks, Wide, 1, Biased>,
                grid, p);
  };
  if (p.slopes != nullptr || p.table != nullptr) {
    start_with.template operator()<true>();
  } else {
    start_with.template operator()<false>();
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const DecodeAttention<T>& p) {
  using N = Native<T>;
  using Kind = typename ScoreBias<T>::Kind;
  if (p.rows.capacity * p.heads == 0) return;
  check_head_width(p.head_width);
  Decode<N> job{.rows = p.rows,
                .heads = p.heads,
                .group = p.heads / p.kv_heads,
                .width = static_cast<int>(p.head_width),
                .q = native(p.q),
                .k = native(p.k),
                .v = native(p.v),
                .q_stride = p.q_stride,
                .k_stride = p.k_stride,
                .v_stride = p.v_stride,
                .keys = p.keys,
                .scale = static_cast<float>(p.scale),
                .out = native(p.out),
                .out_stride = p.out_stride};
  if (p.newest.k != nullptr) {
    job.newest = {.slot = p.newest.slot,
                  .k = native(p.newest.k),
                  .v = native(p.newest.v),
                  .k_stride = p.newest.k_stride,
                  .v_stride = p.newest.v_stride,
                  .to_k = native(p.newest.to_k),
                  .to_v = native(p.newest.to_v)};
  }
  if (p.bias.kind == Kind::slopes) job.slopes = p.bias.slopes;
  if (p.bias.kind == Kind::buckets) {
    job.table = native(p.bias.table);
    job.bounds = bucket_bounds(ctx, p.bias);
  }
  const bool whole = p.head_width % 8 == 0 && wide(job.q, p.q_stride) && wide(job.k, p.k_stride) &&
                     wide(job.v, p.v_stride) && wide(job.out, p.out_stride) &&
                     wide(job.newest.k, p.newest.k_stride) && wide(job.newest.v, p.newest.v_stride);
  // The number of rows decides, and with it bits: not where they must not depend on the batch.
  constexpr std::int64_t kManyKeys = 96;
  const bool together = !ctx.deterministic() && p.max_keys >= kManyKeys &&
                        p.rows.capacity * p.heads < ctx.multiprocessors() * 8;
  if (p.head_width > 8 * kWarp) {
    whole ? start_many_columns<true>(ctx, job) : start_many_columns<false>(ctx, job);
  } else if (!whole) {
    start<32, false>(ctx, job, together);
  } else if (p.head_width <= 32) {
    start<4, true>(ctx, job, together);
  } else if (p.head_width <= 64) {
    start<8, true>(ctx, job, together);
  } else if (p.head_width <= 128) {
    start<16, true>(ctx, job, together);
  } else {
    start<32, true>(ctx, job, together);
  }
}
template void compute<Cuda>(CudaContext&, const DecodeAttention<float>&);
template void compute<Cuda>(CudaContext&, const DecodeAttention<BFloat16>&);

}  // namespace nunchi::kernels
