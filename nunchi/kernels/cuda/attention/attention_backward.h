// Shared by the kernels of attention's backward pass, on tensor cores and in f32.
//
// Short sentences may have their own kernel (attention_backward_short.cu). The others take two
// kernels in sequence, both without atomics: the first loops over the keys of each query for d_q,
// the second over the queries of each key for d_k and d_v. The first also computes two inputs of
// the second: delta = Σ d_out · out for each query and head, and the index of each sentence's first
// tile of keys.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nunchi/kernels/cuda/attention/attention_common.h"

namespace nunchi::kernels {

template <class N>
struct BackwardArguments {
  AttentionArguments<N> in;
  Rows rows, key_rows;
  const N *out, *d_out;
  std::int64_t out_stride, d_out_stride;
  const float* log_sum;
  N *d_q, *d_k, *d_v;
  std::int64_t d_q_stride, d_k_stride, d_v_stride;
  bool accumulate_q, accumulate_k, accumulate_v;
  bool aligned;                // all matrices can be read eight elements at a time
  bool skip_short_sentences;   // another kernel computes them
  int query_tiles, key_tiles;  // tiles of 16 rows per warp, on tensor cores
  // Queries and keys of the longest sentences; they only affect the order of blocks.
  std::int64_t max_queries, max_keys;
  float* delta;       // [H, T], in the f32 kernels
  float2* row_terms;  // [H, T], on tensor cores: log_sum as a base-2 logarithm, and delta
  int* key_starts;    // [B + 1] first tile of each sentence's keys
  // [partials, H, buckets] partial sums of the table's gradient, one per tile of queries (and per
  // warp on tensor cores); null: not wanted.
  float* table_partials;
};

// One warp's partial sums of the table's gradient. Each lane has its own sums, so that the order of
// additions is fixed.
class BucketGradients {
 public:
  // Shared memory per warp.
  static constexpr std::size_t bytes(int buckets) {
    return static_cast<std::size_t>(buckets) * kWarp * sizeof(float);
  }

  template <class N>
  __device__ BucketGradients(const BackwardArguments<N>& p, float* shared, int warp)
      : buckets_(p.table_partials != nullptr ? p.in.bias.buckets : 0),
        reach_(p.in.bias.reach),
        bucket_center_(p.in.bias.bucket + reach_),
        lane_sums_(shared + warp * buckets_ * kWarp + threadIdx.x % kWarp) {
    for (int i = 0; i < buckets_; ++i) lane_sums_[i * kWarp] = 0;
  }
  __device__ bool active() const { return buckets_ > 0; }
  __device__ void add(int relative, float d_score) {
    lane_sums_[bucket_center_[min(max(relative, -reach_), reach_)] * kWarp] += d_score;
  }
  __device__ void store(float* partial) const {
    for (int i = 0; i < buckets_; ++i) {
      const float sum = warp_sum(lane_sums_[i * kWarp]);
      if (threadIdx.x % kWarp == 0) partial[i] = sum;
    }
  }

 private:
  int buckets_, reach_;
  const int* bucket_center_;
  float* lane_sums_;
};

// Warps per block if each warp needs this much shared memory.
inline int table_warps(std::size_t bytes_per_warp) {
  constexpr std::size_t kMaxShared = 32 << 10;  // the f32 kernels keep rows there too
  return bytes_per_warp > 0 ? std::clamp(static_cast<int>(kMaxShared / bytes_per_warp), 1, 4) : 4;
}

// Warps per block on the tensor cores, each with one or two tiles of queries or keys.
constexpr int kGradientWarps = 4;
// Blocks per multiprocessor to aim for, with M tiles per warp and heads of D columns.
template <int D, int M>
constexpr int kGradientBlocks = M == 2 || D == 128 ? 2 : 3;
constexpr int block_rows(int tiles) { return kGradientWarps * 16 * tiles; }

template <class N>
bool uses_tensor_cores(const BackwardArguments<N>& p) {
  return sizeof(N) == 2 && p.aligned && (p.in.width == 32 || p.in.width == 64 || p.in.width == 128);
}
// Compute d_q, then d_k and d_v.
void launch_mma_queries(CudaContext& ctx, const BackwardArguments<__nv_bfloat16>& p);
void launch_mma_keys(CudaContext& ctx, const BackwardArguments<__nv_bfloat16>& p);

}  // namespace nunchi::kernels
