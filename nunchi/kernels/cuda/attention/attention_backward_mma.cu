// Gradients of queries on the tensor cores, for sentences of any length: four warps take 16 or 32
// queries each and loop together over the keys. While they compute with some keys, the next are
// copied to shared memory.
#include <limits>

#include "nunchi/kernels/cuda/attention/attention_backward.h"
#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/common/smem_tile_products.h"

namespace nunchi::kernels {
namespace {

using Bf16 = __nv_bfloat16;
using Arguments = BackwardArguments<Bf16>;

constexpr int kWarps = kGradientWarps;
constexpr float kHighest = std::numeric_limits<float>::infinity();

// Shared memory: each warp's rows of q, d_out and out, and the staged keys and values.
template <int D, int M>
constexpr int kBytes = 3 * kWarps* M* SmemTile<D>::kBytes + DoubleBufferedRows<D>::kBytes;

// d_q of 64 or 128 queries of one head.
template <int D, int M, ScoreTerms Terms>
__global__ void __launch_bounds__(kWarps* kWarp, kGradientBlocks<D, M>)
    queries_kernel(Arguments p, TileOrder order) {
  constexpr int kWarpRows = kTileRows * M, kBlockRows = kWarps * kWarpRows,
                kStageKeys = DoubleBufferedRows<D>::kRows;
  extern __shared__ __align__(LaneTiles<D>::kAlignment) uint4 memory[];
  const AttentionArguments<Bf16>& in = p.in;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4;
  const int head = blockIdx.y;
  if (blockIdx.x == 0) {
    if (head == 0 && warp == 0) {
      count_key_tiles(block_rows(p.key_tiles), in.k_length, in.sentences, p.key_starts);
    }
    return;
  }
  int tile_index;
  if (!order.find_tile(static_cast<int>(blockIdx.x) - 1, tile_index)) return;
  const Tile tile = query_tile<kBlockRows>(in.q_offsets, in.sentences, tile_index);
  const int first = tile.first + warp * kWarpRows;  // the warp's first query
  BucketGradients table(p, reinterpret_cast<float*>(memory) + kBytes<D, M> / sizeof(float), warp);
  float* table_partial =
      p.table_partials +
      ((std::int64_t{tile_index} * kWarps + warp) * in.heads + head) * in.bias.buckets;
  if (tile.is_spare(in.sentences)) {
    const int row = in.q_offsets[in.sentences] + first;
    if (!p.accumulate_q) {
      clear_rows(p.d_q + head * D, p.d_q_stride, D, row, row + kWarpRows, p.rows);
    }
    return table.store(table_partial);
  }
  const SentenceSpan span(in, tile.sentence);
  if (tile.first >= span.queries) return table.store(table_partial);
  if (p.skip_short_sentences && span.is_short()) return;
  const MatrixRows head_keys{
      head_columns(in.k, in.k_stride, span.first_key, head / in.heads_per_kv_head, D), in.k_stride};
  const MatrixRows head_values{
      head_columns(in.v, in.v_stride, span.first_key, head / in.heads_per_kv_head, D), in.v_stride};
  const SmemTile<D> tiles{shared_address(memory)};
  const SmemTile<D> q = tiles.tile(warp * M), d_out = q.tile(kWarps * M),
                    out = d_out.tile(kWarps * M);
  const DoubleBufferedRows<D> staged{tiles.tile(3 * kWarps * M)};
  const int block_keys = span.visible_keys(min(tile.first + kBlockRows, span.queries) - 1);
  if (block_keys > 0) staged.copy_async(0, head_keys, head_values, 0, span.keys);

  // Rows past the last query are loaded as zeros and are not written.
  float log_sum[M][2], delta[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int from = first + kTileRows * m, count = span.queries - from;
    const int row = span.first_query + (count > 0 ? from : 0);
    q.tile(m).copy_async(head_columns(in.q, in.q_stride, row, head, D), in.q_stride, count);
    d_out.tile(m).copy_async(head_columns(p.d_out, p.d_out_stride, row, head, D), p.d_out_stride,
                             count);
    out.tile(m).copy_async(head_columns(p.out, p.out_stride, row, head, D), p.out_stride, count);
    // kHighest makes the weights of missing queries zero.
    const float* log_sums = p.log_sum + head * p.rows.capacity + row;
    log_sum[m][0] = g < count ? log_sums[g] * kLog2E : kHighest;
    log_sum[m][1] = g + 8 < count ? log_sums[g + 8] * kLog2E : kHighest;
  }
  wait_for_all_copies();
  __syncwarp();
  std::uint32_t q_fragments[D / 16][M][4], d_out_fragments[D / 16][M][4];
#pragma unroll
  for (int i = 0; i < D / 16; ++i) {
    load_blocks(q_fragments[i], LaneTiles<D>(q), i);
    load_blocks(d_out_fragments[i], LaneTiles<D>(d_out), i);
  }
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int from = first + kTileRows * m, count = span.queries - from;
    row_dots<D>(delta[m], d_out.tile(m), out.tile(m));
    float2* terms = p.row_terms + head * p.rows.capacity + span.first_query + from;
    if (c == 0 && g < count) terms[g] = {log_sum[m][0], delta[m][0]};
    if (c == 0 && g + 8 < count) terms[g + 8] = {log_sum[m][1], delta[m][1]};
  }

  const HeadBias bias(in.bias, head);
  const DropoutMask dropout_mask(in, tile.sentence, head);
  const float scale = in.scale * kLog2E;
  const bool drops = Terms == ScoreTerms::any && in.dropout.active();
  const int visible_to_all = span.visible_keys(first);
  const int visible_to_any =
      first < span.queries ? span.visible_keys(min(first + kWarpRows, span.queries) - 1) : 0;
  float sums[M][D / 8][4] = {};
  const LaneTiles<D> staged_tiles(staged.memory),
      b_fragment_tiles = LaneTiles<D>::for_b_fragments(staged.memory);
  // Computes with 32 staged keys, from `key` on. Edge: some of them may be hidden from some of the
  // warp's queries.
  const auto step = [&]<bool Edge>(int key, int first_tile) {
    std::uint32_t drawn[M] = {};
    if (drops) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const int query = first + kTileRows * m + g;
        drawn[m] = dropout_mask.mask8(query, key + 8 * c) |
                   dropout_mask.mask8(query + 8, key + 8 * c) << 8;
      }
    }
    // Sixteen keys at a time, limited by registers.
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const LaneTiles<D> k_rows = b_fragment_tiles.from_tile(first_tile).tile(t),
                         v_rows = k_rows.tile(DoubleBufferedRows<D>::kTiles);
      float x[M][2][4], d_x[M][2][4];
#pragma unroll
      for (int i = 0; i < D / 16; ++i) {
        multiply_transposed_block(x, q_fragments[i], k_rows, i);
        multiply_transposed_block(d_x, d_out_fragments[i], v_rows, i);
      }
      const int lane_key = key + kTileRows * t + 2 * c;
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const int query = first + kTileRows * m + g, relative = lane_key - (query + span.shift);
        const int visible[2] = {span.visible_keys(query), span.visible_keys(query + 8)};
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          std::uint32_t bits = 0;
          if (drops) bits = __shfl_sync(kAllLanes, drawn[m], (lane & ~3) + 2 * t + n) >> (2 * c);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int distance = relative + 8 * n + e % 2 - e / 2 * 8;
            float exponent = x[m][n][e] * scale - log_sum[m][e / 2];
            if (Terms == ScoreTerms::any && bias.active) exponent += bias.at(distance) * kLog2E;
            float weight = fast_exp2(exponent);
            if (Edge && lane_key + 8 * n + e % 2 >= visible[e / 2]) weight = 0;
            float d_weight = d_x[m][n][e];
            if (drops) {
              d_weight = bits >> (e % 2 + e / 2 * 8) & 1 ? d_weight * in.dropout.scale : 0.0f;
            }
            x[m][n][e] = weight * (d_weight - delta[m][e / 2]);
            if (Terms == ScoreTerms::any && table.active()) table.add(distance, x[m][n][e]);
          }
        }
      }
      add_product(sums, x, 0, staged_tiles.from_tile(first_tile).tile(t));
    }
  };
  for (int first_key = 0; first_key < block_keys; first_key += kStageKeys) {
    wait_for_all_copies();
    __syncthreads();  // these keys have arrived, and all warps have finished the previous ones
    const int stage = first_key / kStageKeys;
    if (first_key + kStageKeys < block_keys) {
      staged.copy_async(stage + 1, head_keys, head_values, first_key + kStageKeys, span.keys);
    }
#pragma unroll 1
    for (int key = first_key; key < min(first_key + kStageKeys, visible_to_any); key += 32) {
      const int first_tile =
          DoubleBufferedRows<D>::first_tile(stage) + (key - first_key) / kTileRows;
      if (Terms == ScoreTerms::scale_only && key + 32 <= visible_to_all) {
        step.template operator()<false>(key, first_tile);
      } else {
        step.template operator()<true>(key, first_tile);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int from = first + kTileRows * m;
    write_rows<D>(out.tile(m), sums[m], in.scale,
                  {p.d_q + (span.first_query + from) * p.d_q_stride + head * D, p.d_q_stride,
                   span.queries - from, p.accumulate_q});
  }
  table.store(table_partial);
}

template <int D, int M, ScoreTerms Terms>
void launch(CudaContext& ctx, const Arguments& p) {
  const AttentionArguments<Bf16>& in = p.in;
  const int table_bytes = p.table_partials != nullptr
                              ? kWarps * static_cast<int>(BucketGradients::bytes(in.bias.buckets))
                              : 0;
  const int bytes = kBytes<D, M> + table_bytes;
  // The first block also counts the tiles of keys.
  const TileOrder order =
      query_order(in, max_query_tiles(p.rows.capacity, in.sentences, block_rows(M)), p.max_queries,
                  block_rows(M));
  const dim3 grid(order.blocks() + 1, static_cast<unsigned>(in.heads));
  allow_shared_memory(queries_kernel<D, M, Terms>, bytes);
  queries_kernel<D, M, Terms><<<grid, kWarps * kWarp, bytes, ctx.stream()>>>(p, order);
  check_launch("attention_backward, queries");
}

}  // namespace

void launch_mma_queries(CudaContext& ctx, const BackwardArguments<__nv_bfloat16>& p) {
  dispatch_tiles(p.in, p.query_tiles,
                 [&]<int D, int M, ScoreTerms Terms>() { launch<D, M, Terms>(ctx, p); });
}

}  // namespace nunchi::kernels
