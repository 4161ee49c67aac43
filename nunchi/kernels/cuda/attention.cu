// Three kernels: bf16 heads of 32, 64 or 128 columns go to the tensor cores, a warp for 16 or 32
// queries, where short sentences of most of them have a way of their own (attention_short.cu);
// everything else is computed exactly in f32, a warp for one query.
#include "nunchi/kernels/attention.h"

#include <cmath>
#include <limits>

#include "nunchi/kernels/cuda/attention_heads.h"
#include "nunchi/kernels/cuda/attention_scores.h"
#include "nunchi/kernels/cuda/attention_short.h"
#include "nunchi/kernels/cuda/device.h"
#include "nunchi/kernels/cuda/mma.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Sixteen queries of one head on their way through the keys. Scores are in units of log 2.
template <int D>
struct QueryTile {
  RowShare<D> low, high;  // rows g and g + 8
  float sums[D / 8][4] = {};
  float top[2] = {kLowest, kLowest};
  float total[2] = {0, 0};  // of this lane's keys

  // Weights of 32 keys, relative to the highest score so far; what was summed before follows.
  __device__ void weigh(float (&x)[4][4]) {
    float base[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      float highest = kLowest;
#pragma unroll
      for (int n = 0; n < 4; ++n) highest = fmaxf(highest, fmaxf(x[n][2 * u], x[n][2 * u + 1]));
      highest = fmaxf(top[u], quad_max(highest));
      // A query that has seen no key yet has no highest score.
      base[u] = highest == kLowest ? 0.0f : highest;
      const float shrink = exp2_approximate(top[u] - base[u]);
      top[u] = highest;
      total[u] *= shrink;
#pragma unroll
      for (int j = 0; j < D / 8; ++j) sums[j][2 * u] *= shrink, sums[j][2 * u + 1] *= shrink;
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        x[n][e] = exp2_approximate(x[n][e] - base[e / 2]);
        total[e / 2] += x[n][e];
      }
    }
  }
};

// Blocks that a multiprocessor should hold at once: what the registers of a tile allow.
template <int D, int M>
constexpr int kBlocks = M == 2 || D == 128 ? 2
                        : D == 64          ? 3
                                           : 4;

template <int D, int M>
__global__ void __launch_bounds__(kThreads, kBlocks<D, M>) mma_kernel(Forward<__nv_bfloat16> p) {
  constexpr int kRows = 16 * M;
  const Heads<__nv_bfloat16>& in = p.in;
  const int lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4, head = blockIdx.y;
  // Of a causal sentence the last queries see the most keys: they start first.
  const int slot = (gridDim.x - blockIdx.x) * kWarps - 1 - threadIdx.x / kWarp;
  const Tile tile = query_tile<kRows>(in.q_offsets, in.sentences, slot);
  if (tile.sentence == in.sentences) {
    const int first = in.q_offsets[in.sentences] + tile.first;
    return clear_rows(p.out + head * D, p.out_stride, D, first, first + kRows, p.rows);
  }
  const Span span(in, tile.sentence);
  if (tile.first >= span.queries || (p.short_apart && span.is_short())) return;
  const HeadBias bias(in.bias, head);
  const KeepBits keep(in, tile.sentence, head);
  const auto* q = head_of(in.q, in.q_stride, span.first_query, head, D);
  const auto* k = head_of(in.k, in.k_stride, span.first_key, head / in.group, D);
  const auto* v = head_of(in.v, in.v_stride, span.first_key, head / in.group, D);
  const float scale = in.scale * kLog2E;

  QueryTile<D> queries[M];
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int row = tile.first + 16 * m + g;
    queries[m].low.load(q + row * in.q_stride, row < span.queries);
    queries[m].high.load(q + (row + 8) * in.q_stride, row + 8 < span.queries);
  }
  const int everyone_sees = span.visible(tile.first);
  const int keys = span.visible(min(tile.first + kRows, span.queries) - 1);
  for (int key = 0; key < keys; key += 32) {
    RowBlock<D> values[2];
    float x[M][4][4] = {};
    values[0].load(v + key * in.v_stride, in.v_stride, keys - key);
    values[1].load(v + (key + 16) * in.v_stride, in.v_stride, keys - key - 16);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int row = key + 8 * n + g;
      RowShare<D> share;
      share.load(k + row * in.k_stride, row < keys);
#pragma unroll
      for (int m = 0; m < M; ++m) add_dots(x[m][n], queries[m].low, queries[m].high, share);
    }
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int query = tile.first + 16 * m + g;
      scale_scores(x[m], scale, bias, key + 2 * c - (query + span.shift));
      if (key + 32 > everyone_sees) {
        const int visible[2] = {span.visible(query), span.visible(query + 8)};
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if (key + 8 * n + 2 * c + e % 2 >= visible[e / 2]) x[m][n][e] = kLowest;
          }
        }
      }
      queries[m].weigh(x[m]);
      if (in.draws.threshold > 0) {
        // Lane c draws for eight keys and both rows; the four lanes of a row show each other.
        const std::uint32_t own = keep.of(query, key + 8 * c) | keep.of(query + 8, key + 8 * c)
                                                                    << 8;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const std::uint32_t bits = __shfl_sync(kAllLanes, own, (lane & ~3) + n) >> (2 * c);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if ((bits >> (e % 2 + e / 2 * 8) & 1) == 0) x[m][n][e] = 0;
          }
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t a[4];
        to_a(a, x[m][2 * half], x[m][2 * half + 1]);
        add_rows(queries[m].sums, a, values[half]);
      }
    }
  }

  const auto finish = [&]<int Upper>(const QueryTile<D>& done, int row) {
    const float total = quad_sum(done.total[Upper]);
    if (row >= span.queries) return;
    const std::int64_t at = span.first_query + row;
    store_row<D, Upper>(p.out + at * p.out_stride + head * D, done.sums,
                        total > 0 ? in.draws.scale / total : 0.0f, false);
    if (p.log_sum != nullptr && c == 0) {
      p.log_sum[head * p.rows.capacity + at] =
          total > 0 ? (done.top[Upper] + log2f(total)) * kLn2 : 0.0f;
    }
  };
#pragma unroll
  for (int m = 0; m < M; ++m) {
    finish.template operator()<0>(queries[m], tile.first + 16 * m + g);
    finish.template operator()<1>(queries[m], tile.first + 16 * m + g + 8);
  }
}

// Lanes stand for keys while scores are made, for columns while values are summed: columns lane,
// lane + 32, … of at most 32 * Each.
template <class N, int Each>
__global__ void __launch_bounds__(kThreads) exact_kernel(Forward<N> p) {
  const Heads<N>& in = p.in;
  const int lane = threadIdx.x % kWarp, head = blockIdx.y;
  const int slot = blockIdx.x * kWarps + threadIdx.x / kWarp;
  __shared__ __align__(16) float rows_of_q[kWarps][32 * Each];
  float* q = rows_of_q[threadIdx.x / kWarp];
  const Tile tile = query_tile<1>(in.q_offsets, in.sentences, slot);
  if (tile.sentence == in.sentences) {
    const int row = in.q_offsets[in.sentences] + tile.first;
    return clear_rows(p.out + head * in.width, p.out_stride, in.width, row, row + 1, p.rows);
  }
  const Span span(in, tile.sentence);
  const int query = tile.first;
  if (query >= span.queries) return;
  const std::int64_t row = span.first_query + query;
  load_row<Each>(q, head_of(in.q, in.q_stride, span.first_query + query, head, in.width), in.width);
  const N* k = head_of(in.k, in.k_stride, span.first_key, head / in.group, in.width);
  const N* v = head_of(in.v, in.v_stride, span.first_key, head / in.group, in.width);
  const HeadBias bias(in.bias, head);
  const KeepBits keep(in, tile.sentence, head);

  float sums[Each] = {}, top = kLowest, total = 0;
  const int keys = span.visible(query);
  for (int key = 0; key < keys; key += kWarp) {
    const int own = key + lane;
    float score = kLowest;
    if (own < keys) {
      score = dot(q, k + own * in.k_stride, in.width, in.wide) * in.scale;
      if (bias.active) score += bias.at(own - (query + span.shift));
    }
    // fmaxf passes over a NaN; where all are, there is no highest score.
    const float highest = fmaxf(top, warp_max(score)), base = highest == kLowest ? 0.0f : highest;
    const float shrink = expf(top - base);
    float weight = expf(score - base);
    top = highest;
    total = total * shrink + warp_sum(weight);
    if (in.draws.threshold > 0) {
      const bool kept = keep.of(query, own & ~7) >> (own & 7) & 1;
      weight = kept ? weight * in.draws.scale : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < Each; ++i) sums[i] *= shrink;
    add_weighted<Each>(sums, weight, v + key * in.v_stride, in.v_stride, min(kWarp, keys - key),
                       in.width);
  }
  const float inverse = total > 0 ? 1 / total : 0.0f;
  store_columns<Each>(p.out + row * p.out_stride + std::int64_t{head} * in.width, sums, inverse,
                      in.width, false);
  if (p.log_sum != nullptr && lane == 0) {
    p.log_sum[head * p.rows.capacity + row] = total > 0 ? top + logf(total) : 0.0f;
  }
}

// Sentences of which a tile of 32 queries leaves little unused.
constexpr std::int64_t kLongSentence = 256;

template <int D, int M>
void start_mma(CudaContext& ctx, const Forward<__nv_bfloat16>& p) {
  const std::int64_t slots = query_slots(p.rows.capacity, p.in.sentences, 16 * M);
  const dim3 grid(blocks_for(slots, kWarps), static_cast<unsigned>(p.in.heads));
  mma_kernel<D, M><<<grid, kThreads, 0, ctx.stream()>>>(p);
}

void start_tiles(CudaContext& ctx, const Forward<__nv_bfloat16>& p, std::int64_t max_queries) {
  const bool long_ones = max_queries >= kLongSentence;
  if (p.in.width == 32) {
    long_ones ? start_mma<32, 2>(ctx, p) : start_mma<32, 1>(ctx, p);
  } else if (p.in.width == 64) {
    long_ones ? start_mma<64, 2>(ctx, p) : start_mma<64, 1>(ctx, p);
  } else {
    start_mma<128, 1>(ctx, p);
  }
  check_launch("attention");
}

template <int Each, class N>
void start_exact(CudaContext& ctx, const Forward<N>& p) {
  const std::int64_t slots = query_slots(p.rows.capacity, p.in.sentences, 1);
  const dim3 grid(blocks_for(slots, kWarps), static_cast<unsigned>(p.in.heads));
  exact_kernel<N, Each><<<grid, kThreads, 0, ctx.stream()>>>(p);
}

template <class T>
void attend(CudaContext& ctx, const Attention<T>& p) {
  using N = Native<T>;
  if (p.rows.capacity == 0 || p.in.heads == 0) return;
  check_head_width(p.in.head_width);
  const BiasLine<T> bias(ctx, p.in.bias, p.in.heads);
  Forward<N> job{.in = heads_of(p.in, bias),
                 .rows = p.rows,
                 .out = native(p.out),
                 .out_stride = p.out_stride,
                 .log_sum = p.log_sum};
  if constexpr (sizeof(N) == 2) {
    const std::int64_t width = p.in.head_width;
    if (job.in.wide && wide(job.out, job.out_stride) && (short_width(width) || width == 128)) {
      job.short_apart = short_width(width);
      const std::int64_t longest = std::max(p.in.max_queries, p.in.max_keys);
      if (job.short_apart) start_short_forward(ctx, job, longest);
      if (!job.short_apart || longest > kShort) start_tiles(ctx, job, p.in.max_queries);
      return;
    }
  }
  with_columns_each(p.in.head_width, [&]<int Each>() { start_exact<Each>(ctx, job); });
  check_launch(p.name());
}

}  // namespace

template <>
void compute(CudaContext& ctx, const Attention<float>& p) {
  attend(ctx, p);
}
template <>
void compute(CudaContext& ctx, const Attention<BFloat16>& p) {
  attend(ctx, p);
}

}  // namespace nunchi::kernels::cuda
