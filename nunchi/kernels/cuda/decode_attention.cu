// A warp takes one row and head: groups of lanes take a key each, a lane eight neighbouring columns
// of it, and each group keeps a softmax of its own until all keys are seen. Where rows are few and
// keys many, the warps of a block share a row.
#include "nunchi/kernels/decode_attention.h"

#include <limits>

#include "nunchi/kernels/cuda/attention_scores.h"
#include "nunchi/kernels/cuda/device.h"
#include "nunchi/kernels/cuda/score_bias.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kAtOnce = 4;  // keys of a group whose loads are on their way together
constexpr float kLowest = -std::numeric_limits<float>::infinity();

template <class N>
struct Decode {
  Rows rows;
  int heads, group, width;
  const N *q, *k, *v;
  std::int64_t q_stride, k_stride, v_stride;
  KeyPlaces keys;
  NewKeys<N> newest;
  float scale;
  const N *slopes, *table;
  BucketBounds bounds;
  N* out;
  std::int64_t out_stride;
};

// The lane's eight columns from `column` on; Wide: whole and aligned.
template <bool Wide, class N>
__device__ void load_columns(const N* row, int column, int width, float (&x)[8]) {
  if constexpr (Wide) {
    if (column < width) return load8(row + column, x);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    x[i] = !Wide && column + i < width ? to_float(row[column + i]) : 0.0f;
  }
}

template <bool Wide, class N>
__device__ void copy_columns(const N* from, N* to, int column, int width) {
  float x[8];
  load_columns<Wide>(from, column, width, x);
  if constexpr (Wide) {
    if (column < width) store8(to + column, x);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i < width) to[column + i] = from_float<N>(x[i]);
    }
  }
}

// Weights and the sum of values, relative to the highest score so far.
struct Softmax {
  float top = kLowest, total = 0;
  float sums[8] = {};

  __device__ void shrink_to(float highest) {
    const float shrink = top == kLowest ? 0.0f : expf(top - highest);
    top = highest;
    total *= shrink;
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] *= shrink;
  }
  __device__ void add(const Softmax& other) {
    total += other.total;
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += other.sums[i];
  }
};

// Lanes: how many share a key. Together: how many warps share a row and head.
template <class N, int Lanes, bool Wide, int Together>
__global__ void __launch_bounds__(kThreads) decode_kernel(Decode<N> p) {
  constexpr int kGroups = kWarp / Lanes;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int column = lane % Lanes * 8;
  // Heads of a row stand together.
  const int item = static_cast<int>(blockIdx.x * kWarps + warp) / Together;
  const std::int64_t row = item / p.heads;
  const int head = item % p.heads;
  if (row >= p.rows.capacity) return;  // no warp of a shared row goes alone
  begin();
  // Loads that do not wait for one another: a row past the real ones has numbers too.
  const int length = p.keys.length[row];
  const std::int64_t new_slot = p.newest.k != nullptr ? p.newest.slot[row] : 0;
  const bool real = row < real_rows(p.rows);
  const int keys = real ? length : 0;
  const N* k = p.k + std::int64_t{head / p.group} * p.width;
  const N* v = p.v + std::int64_t{head / p.group} * p.width;
  const std::int32_t* slot = nullptr;
  std::int64_t first_place = 0;
  if (p.keys.slot != nullptr) {
    slot = p.keys.slot + p.keys.hypothesis[row] * p.keys.slot_stride;
  } else {
    first_place = p.keys.begin[row];
  }
  const float slope = p.slopes != nullptr ? to_float(p.slopes[head]) : 0.0f;

  float q[8] = {};
  if (real) {
    load_columns<Wide>(p.q + row * p.q_stride + std::int64_t{head} * p.width, column, p.width, q);
  }
  constexpr int kStep = kGroups * kAtOnce * Together;  // keys that go by in a round
  // Key u of this group in the round from `first` on.
  const auto key_of = [&](int first, int u) {
    return first + ((warp % Together) * kAtOnce + u) * kGroups + lane / Lanes;
  };
  const auto place_of = [&](int key) -> std::int64_t {
    if (key >= keys) return -1;
    return slot != nullptr ? slot[key] : first_place + key;
  };
  // The newest key and value are not in the cache yet: one head of a group puts them there.
  const std::int64_t newest_k = row * p.newest.k_stride + std::int64_t{head / p.group} * p.width;
  const std::int64_t newest_v = row * p.newest.v_stride + std::int64_t{head / p.group} * p.width;
  if (p.newest.k != nullptr && real && head % p.group == 0 && warp % Together == 0 &&
      lane < Lanes) {
    const std::int64_t to_k = new_slot * p.k_stride + std::int64_t{head / p.group} * p.width;
    const std::int64_t to_v = new_slot * p.v_stride + std::int64_t{head / p.group} * p.width;
    copy_columns<Wide>(p.newest.k + newest_k, p.newest.to_k + to_k, column, p.width);
    copy_columns<Wide>(p.newest.v + newest_v, p.newest.to_v + to_v, column, p.width);
  }
  std::int64_t place[kAtOnce];
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) place[u] = place_of(key_of(0, u));

  Softmax all;
  for (int first = 0; first < keys; first += kStep) {
    float x[kAtOnce][8], y[kAtOnce][8], score[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
#pragma unroll
      for (int i = 0; i < 8; ++i) x[u][i] = y[u][i] = 0;
      if (place[u] < 0) continue;
      const bool newest = p.newest.k != nullptr && key_of(first, u) == keys - 1;
      load_columns<Wide>(newest ? p.newest.k + newest_k : k + place[u] * p.k_stride, column,
                         p.width, x[u]);
      load_columns<Wide>(newest ? p.newest.v + newest_v : v + place[u] * p.v_stride, column,
                         p.width, y[u]);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) place[u] = place_of(key_of(first + kStep, u));
    float highest = all.top;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += q[i] * x[u][i];
#pragma unroll
      for (int lanes = Lanes / 2; lanes > 0; lanes /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, lanes);
      }
      const int key = key_of(first, u), distance = keys - 1 - key;
      score[u] = kLowest;
      if (key < keys) {
        score[u] = sum * p.scale - slope * static_cast<float>(distance);
        if (p.table != nullptr) {
          score[u] += to_float(p.table[p.bounds.bucket_of(-distance) * p.heads + head]);
        }
      }
      highest = fmaxf(highest, score[u]);
    }
    // A group may have no key in this round, and none before it. fmaxf passes over a NaN.
    const float base = highest == kLowest ? 0.0f : highest;
    all.shrink_to(base);
    all.top = highest;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const float weight = expf(score[u] - base);
      all.total += weight;
#pragma unroll
      for (int i = 0; i < 8; ++i) all.sums[i] += weight * y[u][i];
    }
  }

  // Groups of the warp become one, then the warps.
  const float highest = warp_max(all.top);
  all.shrink_to(highest);
#pragma unroll
  for (int lanes = Lanes; lanes < kWarp; lanes *= 2) {
    Softmax other;
    other.total = __shfl_xor_sync(kAllLanes, all.total, lanes);
#pragma unroll
    for (int i = 0; i < 8; ++i) other.sums[i] = __shfl_xor_sync(kAllLanes, all.sums[i], lanes);
    all.add(other);
  }
  if constexpr (Together > 1) {
    constexpr int kNumbers = 10;
    __shared__ float parts[kWarps][kNumbers][Lanes];
    if (lane < Lanes) {
      parts[warp][0][lane] = all.top;
      parts[warp][1][lane] = all.total;
#pragma unroll
      for (int i = 0; i < 8; ++i) parts[warp][2 + i][lane] = all.sums[i];
    }
    __syncthreads();
    if (warp > 0 || lane >= Lanes) return;
    float top = kLowest;
#pragma unroll
    for (int w = 0; w < Together; ++w) top = fmaxf(top, parts[w][0][lane]);
    all = Softmax{};
#pragma unroll
    for (int w = 0; w < Together; ++w) {
      Softmax part;
      part.top = parts[w][0][lane];
      part.total = parts[w][1][lane];
#pragma unroll
      for (int i = 0; i < 8; ++i) part.sums[i] = parts[w][2 + i][lane];
      part.shrink_to(top);
      all.add(part);
    }
  }
  if (lane >= Lanes || column >= p.width) return;
  const float inverse = all.total > 0 ? 1 / all.total : 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) all.sums[i] *= inverse;
  N* out = p.out + row * p.out_stride + std::int64_t{head} * p.width + column;
  if constexpr (Wide) {
    store8(out, all.sums);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i < p.width) out[i] = from_float<N>(all.sums[i]);
    }
  }
}

template <int Lanes, bool Wide, class N>
void start(CudaContext& ctx, const Decode<N>& p, bool together) {
  const std::int64_t items = p.rows.capacity * p.heads;
  if (together) {
    static_assert(kWarps == 4);
    start_early(ctx, "decode_attention", decode_kernel<N, Lanes, Wide, kWarps>,
                {blocks_for(items, 1), kThreads}, p);
  } else {
    start_early(ctx, "decode_attention", decode_kernel<N, Lanes, Wide, 1>,
                {blocks_for(items, kWarps), kThreads}, p);
  }
}

template <class T>
void decode_attention(CudaContext& ctx, const DecodeAttention<T>& p) {
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
  if (p.bias.kind == Kind::slopes) job.slopes = native(p.bias.slopes);
  if (p.bias.kind == Kind::buckets) {
    job.table = native(p.bias.table);
    job.bounds = bucket_bounds(ctx, p.bias.buckets, p.bias.max_distance, p.bias.bidirectional);
  }
  const bool whole = p.head_width % 8 == 0 && wide(job.q, p.q_stride) && wide(job.k, p.k_stride) &&
                     wide(job.v, p.v_stride) && wide(job.out, p.out_stride) &&
                     wide(job.newest.k, p.newest.k_stride) && wide(job.newest.v, p.newest.v_stride);
  // The number of rows decides, and with it bits: not where they must not depend on the batch.
  constexpr std::int64_t kManyKeys = 96;
  const bool together = !ctx.deterministic() && p.max_keys >= kManyKeys &&
                        p.rows.capacity * p.heads < ctx.multiprocessors() * 8;
  if (!whole) {
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

}  // namespace

template <>
void compute(CudaContext& ctx, const DecodeAttention<float>& p) {
  decode_attention(ctx, p);
}
template <>
void compute(CudaContext& ctx, const DecodeAttention<BFloat16>& p) {
  decode_attention(ctx, p);
}

}  // namespace nunchi::kernels::cuda
