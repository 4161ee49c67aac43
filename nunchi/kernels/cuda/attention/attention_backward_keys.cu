// Gradients of keys and values on the tensor cores: four warps take 16 or 32 keys each and loop
// together over the queries that see them. While they compute with some queries, the next are
// copied to shared memory.
#include "nunchi/kernels/cuda/attention/attention_backward.h"
#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/common/smem_tile_products.h"

namespace nunchi::kernels {
namespace {

using Bf16 = __nv_bfloat16;
using Arguments = BackwardArguments<Bf16>;

constexpr int kWarps = kGradientWarps;

// Queries whose scores are in registers at once.
template <int D, ScoreTerms Terms>
constexpr int kStep = D == 64 && Terms == ScoreTerms::any ? 16 : 32;

// Shared memory: each warp's keys and values, the staged queries, and the row_terms of these.
template <int D, int M>
constexpr int kTermsOffset = 2 * kWarps* M* SmemTile<D>::kBytes + DoubleBufferedRows<D>::kBytes;
template <int D, int M>
constexpr int kBytes = kTermsOffset<D, M> +
                       2 * DoubleBufferedRows<D>::kRows* static_cast<int>(sizeof(float2));

// d_k and d_v of 64 or 128 keys of one key/value head.
template <int D, int M, ScoreTerms Terms>
__global__ void __launch_bounds__(kWarps* kWarp, kGradientBlocks<D, M>)
    keys_kernel(Arguments p, TileOrder order) {
  constexpr int kWarpRows = kTileRows * M, kBlockRows = kWarps * kWarpRows,
                kStageQueries = DoubleBufferedRows<D>::kRows;
  extern __shared__ __align__(LaneTiles<D>::kAlignment) uint4 memory[];
  const AttentionArguments<Bf16>& in = p.in;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4;
  const int kv_head = blockIdx.y;
  int tile_index;
  if (!order.find_tile(static_cast<int>(blockIdx.x), tile_index)) return;
  const Tile tile = key_tile<kBlockRows>(p.key_starts, in.sentences, tile_index);
  const int first = tile.first + warp * kWarpRows;  // the warp's first key
  if (tile.is_spare(in.sentences)) {
    const std::int64_t row = real_rows(p.key_rows) + first, end = row + kWarpRows;
    if (!p.accumulate_k) clear_rows(p.d_k + kv_head * D, p.d_k_stride, D, row, end, p.key_rows);
    if (!p.accumulate_v) clear_rows(p.d_v + kv_head * D, p.d_v_stride, D, row, end, p.key_rows);
    return;
  }
  const SentenceSpan span(in, tile.sentence);
  if (p.skip_short_sentences && span.is_short()) return;
  const SmemTile<D> tiles{shared_address(memory)};
  const SmemTile<D> k = tiles.tile(warp * M), v = k.tile(kWarps * M);
  const DoubleBufferedRows<D> staged{tiles.tile(2 * kWarps * M)};
  // Queries before this one see none of these keys. It is a multiple of 32, so that every block
  // sums the same groups of 32 queries, whatever its number of keys per warp.
  const int first_query = span.causal ? max(tile.first - span.shift, 0) / 32 * 32 : 0;
  // A stage: queries, from `query` on, of one of the heads that share the keys.
  struct Stage {
    int head, query;
  };
  const int end_head = (kv_head + 1) * in.heads_per_kv_head;
  const auto copy_stage = [&](const Stage& stage, int stage_number) {
    staged.copy_async(
        stage_number,
        {head_columns(in.q, in.q_stride, span.first_query, stage.head, D), in.q_stride},
        {head_columns(p.d_out, p.d_out_stride, span.first_query, stage.head, D), p.d_out_stride},
        stage.query, span.queries);
    const int index = static_cast<int>(threadIdx.x), row = stage.query + index;
    if (index >= kStageQueries) return;
    const bool real = row < span.queries;
    copy_async8(tiles.address + kTermsOffset<D, M> +
                    (stage_number % 2 * kStageQueries + index) * sizeof(float2),
                p.row_terms + stage.head * p.rows.capacity + span.first_query + (real ? row : 0),
                real);
  };
  Stage stage{first_query < span.queries ? kv_head * in.heads_per_kv_head : end_head, first_query};
  if (stage.head < end_head) copy_stage(stage, 0);

    // Rows past the last key are loaded as zeros and are not written.
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int from = first + kTileRows * m, count = span.keys - from;
    const int row = span.first_key + (count > 0 ? from : 0);
    k.tile(m).copy_async(head_columns(in.k, in.k_stride, row, kv_head, D), in.k_stride, count);
    v.tile(m).copy_async(head_columns(in.v, in.v_stride, row, kv_head, D), in.v_stride, count);
  }
  const float scale = in.scale * kLog2E;
  const bool drops = Terms == ScoreTerms::any && in.dropout.active();
  const LaneTiles<D> k_tiles(k), staged_tiles(staged.memory),
      b_fragment_tiles = LaneTiles<D>::for_b_fragments(staged.memory);
  float d_k[M][D / 8][4] = {}, d_v[M][D / 8][4] = {};
  for (int stage_number = 0; stage.head < end_head; ++stage_number) {
    wait_for_all_copies();
    __syncthreads();  // these queries have arrived, and all warps have finished the previous ones
    const int head = stage.head, begin = stage.query;
    stage.query += kStageQueries;
    if (stage.query >= span.queries) stage = {head + 1, first_query};
    if (stage.head < end_head) copy_stage(stage, stage_number + 1);
    const HeadBias bias(in.bias, head);
    const DropoutMask dropout_mask(in, tile.sentence, head);
    // Computes with 32 queries, from `query` on. Edge: some of them may not see some of the warp's
    // keys.
    const auto step = [&]<bool Edge>(int query) {
      // Each lane draws the dropout mask of one query and the warp's keys.
      std::uint32_t drawn = 0;
      if (drops) {
#pragma unroll
        for (int i = 0; i < 2 * M; ++i)
          drawn |= dropout_mask.mask8(query + lane, first + 8 * i) << 8 * i;
      }
      const int first_tile =
          DoubleBufferedRows<D>::first_tile(stage_number) + (query - begin) / kTileRows;
      const std::uint32_t terms =
          tiles.address + kTermsOffset<D, M> +
          (stage_number % 2 * kStageQueries + query - begin + 2 * c) * sizeof(float2);
#pragma unroll
      for (int group = 0; group < 32; group += kStep<D, Terms>) {
        const LaneTiles<D> q = staged_tiles.from_tile(first_tile).tile(group / kTileRows),
                           q_rows = b_fragment_tiles.from_tile(first_tile).tile(group / kTileRows);
        float x[M][kStep<D, Terms> / 8][4], d_x[M][kStep<D, Terms> / 8][4];  // rows are keys
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          std::uint32_t words[M][4];
          load_blocks(words, k_tiles, i);
          multiply_transposed_block(x, words, q_rows, i);
          load_blocks(words, k_tiles.tile(kWarps * M), i);
          multiply_transposed_block(d_x, words, q_rows.tile(DoubleBufferedRows<D>::kTiles), i);
        }
#pragma unroll
        for (int n = 0; n < kStep<D, Terms> / 8; ++n) {
          const uint4 two_terms = load_shared16(terms + (group + 8 * n) * sizeof(float2));
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int offset = group + 8 * n + 2 * c + e, lane_query = query + offset;
            const float log_sum = __uint_as_float(e == 0 ? two_terms.x : two_terms.z);
            const float delta = __uint_as_float(e == 0 ? two_terms.y : two_terms.w);
            const int visible =
                Edge && lane_query < span.queries ? span.visible_keys(lane_query) : 0;
            std::uint32_t bits = 0;
            if (drops) bits = __shfl_sync(kAllLanes, drawn, offset) >> g;
#pragma unroll
            for (int r = 0; r < 2 * M; ++r) {  // rows of the warp's keys, eight apart
              const int key = first + 8 * r + g;
              float& score = x[r / 2][n][r % 2 * 2 + e];
              float& d_score = d_x[r / 2][n][r % 2 * 2 + e];
              float exponent = score * scale - log_sum;
              if (Terms == ScoreTerms::any && bias.active) {
                exponent += bias.at(key - (lane_query + span.shift)) * kLog2E;
              }
              float weight = fast_exp2(exponent);
              if (Edge && key >= visible) weight = 0;
              if (drops) {
                const bool kept = bits >> (8 * r) & 1;
                d_score = weight * ((kept ? d_score * in.dropout.scale : 0.0f) - delta);
                if (!kept) weight = 0;
              } else {
                d_score = weight * (d_score - delta);
              }
              score = weight;
            }
          }
        }
#pragma unroll
        for (int t = 0; t < kStep<D, Terms> / kTileRows; ++t) {
          add_product(d_v, x, 2 * t, q.tile(DoubleBufferedRows<D>::kTiles + t));
          add_product(d_k, d_x, 2 * t, q.tile(t));
        }
      }
    };
#pragma unroll 1
    for (int query = begin; query < min(begin + kStageQueries, span.queries); query += 32) {
      if (span.visible_keys(min(query + 32, span.queries) - 1) <= first) continue;
      const bool edge = query + 32 > span.queries || span.visible_keys(query) < first + kWarpRows;
      if (Terms == ScoreTerms::scale_only && !edge) {
        step.template operator()<false>(query);
      } else {
        step.template operator()<true>(query);
      }
    }
  }
  wait_for_all_copies();  // a block without queries has not waited yet
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int from = first + kTileRows * m, count = span.keys - from;
    const std::int64_t row = span.first_key + from;
    write_rows<D>(k.tile(m), d_k[m], in.scale,
                  {p.d_k + row * p.d_k_stride + kv_head * D, p.d_k_stride, count, p.accumulate_k});
    write_rows<D>(v.tile(m), d_v[m], in.dropout.scale,
                  {p.d_v + row * p.d_v_stride + kv_head * D, p.d_v_stride, count, p.accumulate_v});
  }
}

template <int D, int M, ScoreTerms Terms>
void launch(CudaContext& ctx, const Arguments& p) {
  const TileOrder order =
      key_order(p.in, max_key_tiles(p.key_rows.capacity, p.in.sentences, block_rows(M)), p.max_keys,
                block_rows(M));
  const dim3 grid(order.blocks(), static_cast<unsigned>(p.in.heads / p.in.heads_per_kv_head));
  allow_shared_memory(keys_kernel<D, M, Terms>, kBytes<D, M>);
  keys_kernel<D, M, Terms><<<grid, kWarps * kWarp, kBytes<D, M>, ctx.stream()>>>(p, order);
  check_launch("attention_backward, keys");
}

}  // namespace

void launch_mma_keys(CudaContext& ctx, const BackwardArguments<__nv_bfloat16>& p) {
  dispatch_tiles(p.in, p.key_tiles,
                 [&]<int D, int M, ScoreTerms Terms>() { launch<D, M, Terms>(ctx, p); });
}

}  // namespace nunchi::kernels
