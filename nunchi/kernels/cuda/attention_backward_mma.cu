#include <limits>

#include "nunchi/kernels/cuda/attention_gradient.h"
#include "nunchi/kernels/cuda/attention_scores.h"
#include "nunchi/kernels/cuda/mma.h"

namespace nunchi::kernels::cuda {
namespace {

using Bf16 = __nv_bfloat16;
using Job = Backward<Bf16>;

constexpr int kWarps = 4;
constexpr float kHighest = std::numeric_limits<float>::infinity();

// Blocks that a multiprocessor should hold at once, and how much of D is on its way together.
template <int D>
constexpr int kBlocks = D == 128 ? 2 : 3;
template <int D>
constexpr int kUnrolled = D == 128 ? 1 : 2;

// d_q of 16 queries of one head.
template <int D>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<D>) queries_kernel(Job p) {
  extern __shared__ float table_sums[];
  const Heads<Bf16>& in = p.in;
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4, head = blockIdx.y;
  if (blockIdx.x == 0) {
    if (head == 0 && warp == 0) {
      count_key_tiles<kGradientTile>(in.k_length, in.sentences, p.key_starts);
    }
    return;
  }
  const int slot = (gridDim.x - blockIdx.x) * warps - 1 - warp;
  const Tile tile = query_tile<kGradientTile>(in.q_offsets, in.sentences, slot);
  TableSums table(p, table_sums, warp);
  float* table_part = p.table_parts + (std::int64_t{slot} * in.heads + head) * in.bias.buckets;
  if (tile.sentence == in.sentences) {
    const int first = in.q_offsets[in.sentences] + tile.first;
    if (!p.accumulate_q) {
      clear_rows(p.d_q + head * D, p.d_q_stride, D, first, first + kGradientTile, p.rows);
    }
    return table.store(table_part);
  }
  const Span span(in, tile.sentence);
  if (tile.first >= span.queries) return table.store(table_part);
  if (p.short_apart && span.is_short()) return;
  const HeadBias bias(in.bias, head);
  const KeepBits keep(in, tile.sentence, head);
  const Bf16* k = head_of(in.k, in.k_stride, span.first_key, head / in.group, D);
  const Bf16* v = head_of(in.v, in.v_stride, span.first_key, head / in.group, D);
  const float scale = in.scale * kLog2E;
  const int query = tile.first + g;

  RowShare<D> q[2], d_out[2];  // rows g and g + 8
  float log_sum[2], delta[2];
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const bool real = query + 8 * u < span.queries;
    const int row = span.first_query + query + 8 * u;
    q[u].load(head_of(in.q, in.q_stride, row, head, D), real);
    d_out[u].load(head_of(p.d_out, p.d_out_stride, row, head, D), real);
    RowShare<D> out;
    out.load(head_of(p.out, p.out_stride, row, head, D), real);
    delta[u] = quad_sum(dot_share(out, d_out[u]));
    const std::int64_t at = head * p.rows.capacity + row;
    if (real && c == 0) p.delta[at] = delta[u];
    // Weights of a query that is not there become zero.
    log_sum[u] = real ? p.log_sum[at] * kLog2E : kHighest;
  }
  float sums[D / 8][4] = {};
  const int everyone_sees = span.visible(tile.first);
  const int keys = span.visible(min(tile.first + kGradientTile, span.queries) - 1);
  for (int key = 0; key < keys; key += 32) {
    float x[4][4] = {}, d_x[4][4] = {};
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int row = key + 8 * n + g;
      RowShare<D> share;
      share.load(k + row * in.k_stride, row < keys);
      add_dots(x[n], q[0], q[1], share);
      share.load(v + row * in.v_stride, row < keys);
      add_dots(d_x[n], d_out[0], d_out[1], share);
    }
    const int relative = key + 2 * c - (query + span.shift);
    scale_scores(x, scale, bias, relative);
    const bool edge = key + 32 > everyone_sees;
    const int visible[2] = {span.visible(query), span.visible(query + 8)};
    const bool drops = in.draws.threshold > 0;
    std::uint32_t own = 0;
    if (drops) own = keep.of(query, key + 8 * c) | keep.of(query + 8, key + 8 * c) << 8;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      std::uint32_t bits = 0;
      if (drops) bits = __shfl_sync(kAllLanes, own, (lane & ~3) + n) >> (2 * c);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float weight = exp2_approximate(x[n][e] - log_sum[e / 2]);
        if (edge && key + 8 * n + 2 * c + e % 2 >= visible[e / 2]) weight = 0;
        float d_weight = d_x[n][e];
        if (drops) d_weight = bits >> (e % 2 + e / 2 * 8) & 1 ? d_weight * in.draws.scale : 0.0f;
        x[n][e] = weight * (d_weight - delta[e / 2]);
        if (table.active()) table.add(relative + 8 * n + e % 2 - e / 2 * 8, x[n][e]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowBlock<D> rows;
      rows.load(k + (key + 16 * half) * in.k_stride, in.k_stride, keys - key - 16 * half);
      std::uint32_t a[4];
      to_a(a, x[2 * half], x[2 * half + 1]);
      add_rows(sums, a, rows);
    }
  }
  Bf16* d_q = p.d_q + (span.first_query + query) * p.d_q_stride + head * D;
  if (query < span.queries) store_row<D, 0>(d_q, sums, in.scale, p.accumulate_q);
  if (query + 8 < span.queries) {
    store_row<D, 1>(d_q + 8 * p.d_q_stride, sums, in.scale, p.accumulate_q);
  }
  table.store(table_part);
}

// d_k and d_v of 16 keys of one key/value head.
template <int D>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<D>) keys_kernel(Job p) {
  const Heads<Bf16>& in = p.in;
  const int lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4, kv_head = blockIdx.y;
  const int slot = blockIdx.x * kWarps + threadIdx.x / kWarp;
  const Tile tile = key_tile<kGradientTile>(p.key_starts, in.sentences, slot);
  if (tile.sentence == in.sentences) {
    const std::int64_t first = real_rows(p.key_rows) + tile.first, end = first + kGradientTile;
    if (!p.accumulate_k) {
      clear_rows(p.d_k + kv_head * D, p.d_k_stride, D, first, end, p.key_rows);
    }
    if (!p.accumulate_v) {
      clear_rows(p.d_v + kv_head * D, p.d_v_stride, D, first, end, p.key_rows);
    }
    return;
  }
  const Span span(in, tile.sentence);
  if (p.short_apart && span.is_short()) return;
  const int first_row = span.first_key + tile.first, count = span.keys - tile.first;
  const Bf16* k = head_of(in.k, in.k_stride, first_row, kv_head, D);
  const Bf16* v = head_of(in.v, in.v_stride, first_row, kv_head, D);
  const float scale = in.scale * kLog2E;
  const bool drops = in.draws.threshold > 0;
  const int key = tile.first + g;
  // Queries before this one see none of these keys.
  const int first_query = span.causal ? max(tile.first - span.shift, 0) : 0;

  float d_k[D / 8][4] = {}, d_v[D / 8][4] = {};
  for (int head = kv_head * in.group; head < (kv_head + 1) * in.group; ++head) {
    const HeadBias bias(in.bias, head);
    const KeepBits keep(in, tile.sentence, head);
    const Bf16* q = head_of(in.q, in.q_stride, span.first_query, head, D);
    const Bf16* d_out = head_of(p.d_out, p.d_out_stride, span.first_query, head, D);
    const float* log_sums = p.log_sum + head * p.rows.capacity + span.first_query;
    const float* deltas = p.delta + head * p.rows.capacity + span.first_query;
    for (int query = first_query; query < span.queries; query += 32) {
      float x[4][4] = {}, d_x[4][4] = {};  // transposed: rows are keys
      // Keys and values are read again for each 32 queries: registers are for the sums.
#pragma unroll kUnrolled < D>
      for (int d = 0; d < D; d += 32) {
        RowShare<32> k_low, k_high, v_low, v_high, share;
        k_low.load(k + g * in.k_stride + d, g < count);
        k_high.load(k + (g + 8) * in.k_stride + d, g + 8 < count);
        v_low.load(v + g * in.v_stride + d, g < count);
        v_high.load(v + (g + 8) * in.v_stride + d, g + 8 < count);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int row = query + 8 * n + g;
          share.load(q + row * in.q_stride + d, row < span.queries);
          add_dots(x[n], k_low, k_high, share);
          share.load(d_out + row * p.d_out_stride + d, row < span.queries);
          add_dots(d_x[n], v_low, v_high, share);
        }
      }
      // Each lane draws for one query and all 16 keys.
      std::uint32_t own = 0;
      if (drops) {
        own = keep.of(query + lane, tile.first) | keep.of(query + lane, tile.first + 8) << 8;
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int i = query + 8 * n + 2 * c + e;
          const bool real = i < span.queries;
          const float log_sum = real ? log_sums[i] * kLog2E : kHighest;
          const float delta = real ? deltas[i] : 0.0f;
          std::uint32_t bits = 0;
          if (drops) bits = __shfl_sync(kAllLanes, own, 8 * n + 2 * c + e) >> g;
          const int visible = span.visible(i);
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            float& score = x[n][2 * u + e];
            float& d_score = d_x[n][2 * u + e];
            float exponent = score * scale - log_sum;
            if (bias.active) exponent += bias.at(key + 8 * u - (i + span.shift)) * kLog2E;
            float weight = key + 8 * u < visible ? exp2_approximate(exponent) : 0.0f;
            if (drops) {
              const bool kept = bits >> (8 * u) & 1;
              d_score = weight * ((kept ? d_score * in.draws.scale : 0.0f) - delta);
              if (!kept) weight = 0;
            } else {
              d_score = weight * (d_score - delta);
            }
            score = weight;
          }
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = query + 16 * half;
        RowBlock<D> rows;
        std::uint32_t a[4];
        rows.load(d_out + row * p.d_out_stride, p.d_out_stride, span.queries - row);
        to_a(a, x[2 * half], x[2 * half + 1]);
        add_rows(d_v, a, rows);
        rows.load(q + row * in.q_stride, in.q_stride, span.queries - row);
        to_a(a, d_x[2 * half], d_x[2 * half + 1]);
        add_rows(d_k, a, rows);
      }
    }
  }
  const std::int64_t row = first_row + g;
  Bf16* to_k = p.d_k + row * p.d_k_stride + kv_head * D;
  Bf16* to_v = p.d_v + row * p.d_v_stride + kv_head * D;
  if (g < count) {
    store_row<D, 0>(to_k, d_k, in.scale, p.accumulate_k);
    store_row<D, 0>(to_v, d_v, in.draws.scale, p.accumulate_v);
  }
  if (g + 8 < count) {
    store_row<D, 1>(to_k + 8 * p.d_k_stride, d_k, in.scale, p.accumulate_k);
    store_row<D, 1>(to_v + 8 * p.d_v_stride, d_v, in.draws.scale, p.accumulate_v);
  }
}

template <int D>
void start(CudaContext& ctx, const Job& p) {
  const Heads<Bf16>& in = p.in;
  const std::size_t each = p.table_parts != nullptr ? TableSums::bytes(in.bias.buckets) : 0;
  const int warps = table_warps(each);
  // The first block of all counts the tiles of keys.
  const dim3 query_grid(
      blocks_for(query_slots(p.rows.capacity, in.sentences, kGradientTile), warps) + 1,
      static_cast<unsigned>(in.heads));
  queries_kernel<D><<<query_grid, warps * kWarp, warps * each, ctx.stream()>>>(p);
  check_launch("attention_backward, queries");
  const dim3 key_grid(
      blocks_for(key_slots(p.key_rows.capacity, in.sentences, kGradientTile), kWarps),
      static_cast<unsigned>(in.heads / in.group));
  keys_kernel<D><<<key_grid, kWarps * kWarp, 0, ctx.stream()>>>(p);
  check_launch("attention_backward, keys");
}

}  // namespace

void start_mma_backward(CudaContext& ctx, const Backward<__nv_bfloat16>& p) {
  if (p.in.width == 32) return start<32>(ctx, p);
  if (p.in.width == 64) return start<64>(ctx, p);
  start<128>(ctx, p);
}

}  // namespace nunchi::kernels::cuda
