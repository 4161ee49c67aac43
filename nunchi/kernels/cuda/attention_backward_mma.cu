// Gradients on the tensor cores, for sentences of any length: four warps take 16 queries each and
// go through the keys together, then 16 keys each and go through the queries. While they compute
// with some rows, the next ones are on their way to shared memory.
#include <limits>

#include "nunchi/kernels/cuda/attention_gradient.h"
#include "nunchi/kernels/cuda/attention_scores.h"
#include "nunchi/kernels/cuda/shared_tile.h"

namespace nunchi::kernels::cuda {
namespace {

using Bf16 = __nv_bfloat16;
using Job = Backward<Bf16>;

constexpr int kWarps = kGradientWarps;
constexpr float kHighest = std::numeric_limits<float>::infinity();

// Blocks that a multiprocessor should hold at once.
template <int D>
constexpr int kBlocks = D == 128 ? 2 : 3;

// Shared memory: each warp's own rows of so many matrices, and those that pass by.
template <int D>
constexpr int shared_bytes(int matrices) {
  return matrices * kWarps * SharedTile<D>::kBytes + StagedRows<D>::kBytes;
}

// d_q of 64 queries of one head.
template <int D>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<D>) queries_kernel(Job p) {
  constexpr int kStage = StagedRows<D>::kRows;
  extern __shared__ uint4 memory[];
  const Heads<Bf16>& in = p.in;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4;
  const int head = blockIdx.y;
  if (blockIdx.x == 0) {
    if (head == 0 && warp == 0) {
      count_key_tiles<kGradientRows>(in.k_length, in.sentences, p.key_starts);
    }
    return;
  }
  const int slot = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const Tile tile = query_tile<kGradientRows>(in.q_offsets, in.sentences, slot);
  const int first = tile.first + warp * kTileRows;  // the warp's
  TableSums table(p, reinterpret_cast<float*>(memory) + shared_bytes<D>(3) / sizeof(float), warp);
  float* table_part =
      p.table_parts + ((std::int64_t{slot} * kWarps + warp) * in.heads + head) * in.bias.buckets;
  if (tile.sentence == in.sentences) {
    const int row = in.q_offsets[in.sentences] + first;
    if (!p.accumulate_q) {
      clear_rows(p.d_q + head * D, p.d_q_stride, D, row, row + kTileRows, p.rows);
    }
    return table.store(table_part);
  }
  const Span span(in, tile.sentence);
  if (tile.first >= span.queries) return table.store(table_part);
  if (p.short_apart && span.is_short()) return;
  const Bf16* k = head_of(in.k, in.k_stride, span.first_key, head / in.group, D);
  const Bf16* v = head_of(in.v, in.v_stride, span.first_key, head / in.group, D);
  const SharedTile<D> all{shared_address(memory)};
  const SharedTile<D> q = all.next(warp), d_out = q.next(kWarps), out = d_out.next(kWarps);
  const StagedRows<D> staged{all.next(3 * kWarps)};
  const int block_keys = span.visible(min(tile.first + kGradientRows, span.queries) - 1);
  if (block_keys > 0) staged.fetch(0, k, in.k_stride, v, in.v_stride, 0, span.keys);

  // A warp without queries has zeros that see nothing.
  const int count = span.queries - first;
  const int row = span.first_query + (count > 0 ? first : 0);
  q.fetch(head_of(in.q, in.q_stride, row, head, D), in.q_stride, count);
  d_out.fetch(head_of(p.d_out, p.d_out_stride, row, head, D), p.d_out_stride, count);
  out.fetch(head_of(p.out, p.out_stride, row, head, D), p.out_stride, count);
  const std::int64_t at = head * p.rows.capacity + row;
  // Weights of a query that is not there become zero.
  const float log_sum[2] = {g < count ? p.log_sum[at + g] * kLog2E : kHighest,
                            g + 8 < count ? p.log_sum[at + g + 8] * kLog2E : kHighest};
  wait_for_copies();
  __syncwarp();
  float delta[2];
  row_dots<D>(delta, d_out, out);
  if (c == 0 && g < count) p.delta[at + g] = delta[0];
  if (c == 0 && g + 8 < count) p.delta[at + g + 8] = delta[1];

  const HeadBias bias(in.bias, head);
  const KeepBits keep(in, tile.sentence, head);
  const float scale = in.scale * kLog2E;
  const bool drops = in.draws.threshold > 0;
  const int query = first + g, everyone_sees = span.visible(first);
  const int keys = count > 0 ? span.visible(min(first + kTileRows, span.queries) - 1) : 0;
  float sums[D / 8][4] = {};
  for (int stage = 0; stage < block_keys; stage += kStage) {
    wait_for_copies();
    __syncthreads();  // these keys are there, and everyone is through with the last ones
    if (stage + kStage < block_keys) {
      staged.fetch(stage / kStage + 1, k, in.k_stride, v, in.v_stride, stage + kStage, span.keys);
    }
#pragma unroll 1
    for (int key = stage; key < min(stage + kStage, keys); key += 32) {
      const int place = (key - stage) / kTileRows;
      const SharedTile<D> key_tiles = staged.first(stage / kStage).next(place);
      const SharedTile<D> value_tiles = staged.second(stage / kStage).next(place);
      float x[4][4] = {}, d_x[4][4] = {};
#pragma unroll
      for (int i = 0; i < D / 16; ++i) {
        add_dots(x, q, key_tiles, i);
        add_dots(d_x, d_out, value_tiles, i);
      }
      const int relative = key + 2 * c - (query + span.shift);
      scale_scores(x, scale, bias, relative);
      const bool edge = key + 32 > everyone_sees;
      const int visible[2] = {span.visible(query), span.visible(query + 8)};
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
      for (int t = 0; t < 2; ++t) {
        std::uint32_t a[4];
        to_a(a, x[2 * t], x[2 * t + 1]);
        add_product<D>(sums, a, key_tiles.next(t));
      }
    }
  }
  write_rows<D>(out, sums, in.scale, p.d_q + row * p.d_q_stride + head * D, p.d_q_stride, count,
                p.accumulate_q);
  table.store(table_part);
}

// d_k and d_v of 64 keys of one key/value head.
template <int D>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<D>) keys_kernel(Job p) {
  constexpr int kStage = StagedRows<D>::kRows;
  extern __shared__ uint4 memory[];
  const Heads<Bf16>& in = p.in;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4;
  const int kv_head = blockIdx.y;
  const Tile tile =
      key_tile<kGradientRows>(p.key_starts, in.sentences, static_cast<int>(blockIdx.x));
  const int first = tile.first + warp * kTileRows;  // the warp's
  if (tile.sentence == in.sentences) {
    const std::int64_t row = real_rows(p.key_rows) + first, end = row + kTileRows;
    if (!p.accumulate_k) clear_rows(p.d_k + kv_head * D, p.d_k_stride, D, row, end, p.key_rows);
    if (!p.accumulate_v) clear_rows(p.d_v + kv_head * D, p.d_v_stride, D, row, end, p.key_rows);
    return;
  }
  const Span span(in, tile.sentence);
  if (p.short_apart && span.is_short()) return;
  const SharedTile<D> all{shared_address(memory)};
  const SharedTile<D> k = all.next(warp), v = k.next(kWarps);
  const StagedRows<D> staged{all.next(2 * kWarps)};
  // Queries before this one see none of these keys.
  const int first_query = span.causal ? max(tile.first - span.shift, 0) : 0;
  const int stages_each = max(span.queries - first_query + kStage - 1, 0) / kStage;
  const int stages = stages_each * in.group;
  const auto fetch = [&](int stage) {
    const int head = kv_head * in.group + stage / stages_each;
    staged.fetch(stage, head_of(in.q, in.q_stride, span.first_query, head, D), in.q_stride,
                 head_of(p.d_out, p.d_out_stride, span.first_query, head, D), p.d_out_stride,
                 first_query + stage % stages_each * kStage, span.queries);
  };
  if (stages > 0) fetch(0);

  // A warp without keys has zeros that nobody sees.
  const int count = span.keys - first, row = span.first_key + (count > 0 ? first : 0);
  k.fetch(head_of(in.k, in.k_stride, row, kv_head, D), in.k_stride, count);
  v.fetch(head_of(in.v, in.v_stride, row, kv_head, D), in.v_stride, count);
  const float scale = in.scale * kLog2E;
  const bool drops = in.draws.threshold > 0;
  const int key = first + g;
  float d_k[D / 8][4] = {}, d_v[D / 8][4] = {};
  for (int stage = 0; stage < stages; ++stage) {
    wait_for_copies();
    __syncthreads();  // these queries are there, and everyone is through with the last ones
    if (stage + 1 < stages) fetch(stage + 1);
    const int head = kv_head * in.group + stage / stages_each;
    const int begin = first_query + stage % stages_each * kStage;
    const HeadBias bias(in.bias, head);
    const KeepBits keep(in, tile.sentence, head);
    const std::int64_t at = head * p.rows.capacity + span.first_query;
#pragma unroll 1
    for (int query = begin; query < min(begin + kStage, span.queries); query += 32) {
      if (span.visible(min(query + 32, span.queries) - 1) <= first) continue;
      const int place = (query - begin) / kTileRows;
      const SharedTile<D> q = staged.first(stage).next(place);
      const SharedTile<D> d_out = staged.second(stage).next(place);
      // Each lane looks and draws for one query and all 16 keys.
      const bool real = query + lane < span.queries;
      const float own_log_sum = real ? p.log_sum[at + query + lane] * kLog2E : kHighest;
      const float own_delta = real ? p.delta[at + query + lane] : 0.0f;
      std::uint32_t own = 0;
      if (drops) own = keep.of(query + lane, first) | keep.of(query + lane, first + 8) << 8;
      float x[4][4] = {}, d_x[4][4] = {};  // transposed: rows are keys
#pragma unroll
      for (int i = 0; i < D / 16; ++i) {
        add_dots(x, k, q, i);
        add_dots(d_x, v, d_out, i);
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int from = 8 * n + 2 * c + e, visible = span.visible(query + from);
          const float log_sum = __shfl_sync(kAllLanes, own_log_sum, from);
          const float delta = __shfl_sync(kAllLanes, own_delta, from);
          std::uint32_t bits = 0;
          if (drops) bits = __shfl_sync(kAllLanes, own, from) >> g;
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            float& score = x[n][2 * u + e];
            float& d_score = d_x[n][2 * u + e];
            float exponent = score * scale - log_sum;
            if (bias.active) {
              exponent += bias.at(key + 8 * u - (query + from + span.shift)) * kLog2E;
            }
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
      for (int t = 0; t < 2; ++t) {
        std::uint32_t a[4];
        to_a(a, x[2 * t], x[2 * t + 1]);
        add_product<D>(d_v, a, d_out.next(t));
        to_a(a, d_x[2 * t], d_x[2 * t + 1]);
        add_product<D>(d_k, a, q.next(t));
      }
    }
  }
  wait_for_copies();  // without queries nobody has
  write_rows<D>(k, d_k, in.scale, p.d_k + row * p.d_k_stride + kv_head * D, p.d_k_stride, count,
                p.accumulate_k);
  write_rows<D>(v, d_v, in.draws.scale, p.d_v + row * p.d_v_stride + kv_head * D, p.d_v_stride,
                count, p.accumulate_v);
}

template <int D>
void start(CudaContext& ctx, const Job& p) {
  const Heads<Bf16>& in = p.in;
  const int table =
      p.table_parts != nullptr ? kWarps * static_cast<int>(TableSums::bytes(in.bias.buckets)) : 0;
  const int query_bytes = shared_bytes<D>(3) + table, key_bytes = shared_bytes<D>(2);
  // The first block of all counts the tiles of keys.
  const dim3 query_grid(
      static_cast<unsigned>(query_slots(p.rows.capacity, in.sentences, kGradientRows)) + 1,
      static_cast<unsigned>(in.heads));
  allow_shared_memory(queries_kernel<D>, query_bytes);
  queries_kernel<D><<<query_grid, kWarps * kWarp, query_bytes, ctx.stream()>>>(p);
  check_launch("attention_backward, queries");
  const dim3 key_grid(
      static_cast<unsigned>(key_slots(p.key_rows.capacity, in.sentences, kGradientRows)),
      static_cast<unsigned>(in.heads / in.group));
  allow_shared_memory(keys_kernel<D>, key_bytes);
  keys_kernel<D><<<key_grid, kWarps * kWarp, key_bytes, ctx.stream()>>>(p);
  check_launch("attention_backward, keys");
}

}  // namespace

void start_mma_backward(CudaContext& ctx, const Backward<__nv_bfloat16>& p) {
  if (p.in.width == 32) return start<32>(ctx, p);
  if (p.in.width == 64) return start<64>(ctx, p);
  start<128>(ctx, p);
}

}  // namespace nunchi::kernels::cuda
