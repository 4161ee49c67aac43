// What the ways of computing attention's gradients share, on tensor cores and exactly.
//
// Short sentences may have a kernel of their own (attention_backward_short.cu). The others have two
// kernels after one another, both without atomics: the first takes queries through their keys for
// d_q, the second keys through their queries for d_k and d_v. The first also leaves what the second
// needs: delta = Σ d_out · out for each query and head, and where each sentence's tiles of keys
// begin.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nunchi/kernels/cuda/attention/attention_heads.h"

namespace nunchi::kernels {

template <class N>
struct Backward {
  Heads<N> in;
  Rows rows, key_rows;
  const N *out, *d_out;
  std::int64_t out_stride, d_out_stride;
  const float* log_sum;
  N *d_q, *d_k, *d_v;
  std::int64_t d_q_stride, d_k_stride, d_v_stride;
  bool accumulate_q, accumulate_k, accumulate_v;
  bool wide;                           // all of these can be read eight elements at a time
  bool short_apart;                    // short sentences have a kernel of their own
  int query_tiles, key_tiles;          // on tensor cores: of 16 rows, for a warp
  std::int64_t max_queries, max_keys;  // the longest sentence's; an order alone depends on them
  float* delta;                        // [H, T], of the exact kernels
  float2* row_terms;  // [H, T], of those on tensor cores: log_sum in units of log 2, and delta
  int* key_starts;    // [B + 1]
  // [slots of queries, of each warp on tensor cores, H, buckets]; null: nobody wants the table's
  // gradient.
  float* table_parts;
};

// The table's gradient of one warp. Each lane has sums of its own, so that their order is fixed.
class TableSums {
 public:
  // Shared memory of a warp.
  static constexpr std::size_t bytes(int buckets) {
    return static_cast<std::size_t>(buckets) * kWarp * sizeof(float);
  }

  template <class N>
  __device__ TableSums(const Backward<N>& p, float* shared, int warp)
      : buckets_(p.table_parts != nullptr ? p.in.bias.buckets : 0),
        reach_(p.in.bias.reach),
        middle_(p.in.bias.bucket + reach_),
        own_(shared + warp * buckets_ * kWarp + threadIdx.x % kWarp) {
    for (int i = 0; i < buckets_; ++i) own_[i * kWarp] = 0;
  }
  __device__ bool active() const { return buckets_ > 0; }
  __device__ void add(int relative, float d_score) {
    own_[middle_[min(max(relative, -reach_), reach_)] * kWarp] += d_score;
  }
  __device__ void store(float* part) const {
    for (int i = 0; i < buckets_; ++i) {
      const float sum = warp_sum(own_[i * kWarp]);
      if (threadIdx.x % kWarp == 0) part[i] = sum;
    }
  }

 private:
  int buckets_, reach_;
  const int* middle_;
  float* own_;
};

// Warps of a block, of which each needs so much shared memory.
inline int table_warps(std::size_t bytes_each) {
  constexpr std::size_t kMostShared = 32 << 10;  // the exact kernels keep rows there too
  return bytes_each > 0 ? std::clamp(static_cast<int>(kMostShared / bytes_each), 1, 4) : 4;
}

// On the tensor cores: so many warps of a block have each a tile of queries, then keys, or two.
constexpr int kGradientWarps = 4;
// Blocks that a multiprocessor should hold at once, of M tiles a warp with heads of D columns.
template <int D, int M>
constexpr int kGradientBlocks = M == 2 || D == 128 ? 2 : 3;
constexpr int block_rows(int tiles) { return kGradientWarps * 16 * tiles; }

template <class N>
bool computes_by_mma(const Backward<N>& p) {
  return sizeof(N) == 2 && p.wide && (p.in.width == 32 || p.in.width == 64 || p.in.width == 128);
}
// d_q, then d_k and d_v.
void start_mma_queries(CudaContext& ctx, const Backward<__nv_bfloat16>& p);
void start_mma_keys(CudaContext& ctx, const Backward<__nv_bfloat16>& p);

}  // namespace nunchi::kernels
