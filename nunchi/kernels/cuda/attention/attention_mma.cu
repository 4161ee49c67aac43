// Attention on the tensor cores, for sentences of any length: four warps take 16 or 32 queries each
// and loop together over the keys. While they compute with some keys, the next are copied to shared
// memory.
#include <limits>

#include "nunchi/kernels/cuda/attention/attention_common.h"
#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/common/smem_tile_products.h"

namespace nunchi::kernels {
namespace {

using Bf16 = __nv_bfloat16;
using Arguments = ForwardArguments<Bf16>;

constexpr int kWarps = 4;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The online softmax of sixteen queries. Scores are base-2 exponents.
struct OnlineSoftmax {
  float running_max[2] = {kLowest, kLowest};
  float total[2] = {0, 0};  // over this lane's keys

  // Replaces x by the weights exp2(factor * x - running maximum), and rescales the earlier sums if
  // the maximum grows.
  template <int N, int Columns>
  __device__ void update(float (&x)[N][4], float factor, float (&sums)[Columns][4]) {
    float base[2], rescale[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      float new_max = kLowest;
#pragma unroll
      for (int n = 0; n < N; ++n) new_max = fmaxf(new_max, fmaxf(x[n][2 * u], x[n][2 * u + 1]));
      new_max = fmaxf(running_max[u], quad_max(new_max) * factor);
      // The maximum of a query that has seen no key yet is -inf; a base of 0 avoids -inf - -inf.
      base[u] = new_max == kLowest ? 0.0f : new_max;
      rescale[u] = fast_exp2(running_max[u] - base[u]);
      running_max[u] = new_max;
    }
    // A new maximum is rare after the first keys.
    if (__any_sync(kAllLanes, rescale[0] != 1 || rescale[1] != 1)) {
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        total[u] *= rescale[u];
#pragma unroll
        for (int j = 0; j < Columns; ++j) {
          sums[j][2 * u] *= rescale[u], sums[j][2 * u + 1] *= rescale[u];
        }
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        x[n][e] = fast_exp2(x[n][e] * factor - base[e / 2]);
        total[e / 2] += x[n][e];
      }
    }
  }
};

// Shared memory: each warp's own queries, and the staged keys and values.
template <int D, int M>
constexpr int kBytes = kWarps* M* SmemTile<D>::kBytes + DoubleBufferedRows<D>::kBytes;

// Blocks per multiprocessor to aim for, limited by the registers of a tile.
template <int D, int M>
constexpr int kBlocksPerMultiprocessor = M == 2 || D == 128 ? 2
                                         : D == 64          ? 3
                                                            : 4;

template <int D, int M, ScoreTerms Terms>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocksPerMultiprocessor<D, M>)
    mma_kernel(Arguments p, TileOrder order) {
  constexpr int kWarpRows = 16 * M, kStageKeys = DoubleBufferedRows<D>::kRows;
  extern __shared__ __align__(LaneTiles<D>::kAlignment) uint4 memory[];
  const AttentionArguments<Bf16>& in = p.in;
  const int lane = lane_of_thread(), g = lane / 4, c = lane % 4, head = blockIdx.y;
  int tile_index;
  if (!order.find_tile(static_cast<int>(blockIdx.x), tile_index)) return;
  const Tile tile = query_tile<kWarps * kWarpRows>(in.q_offsets, in.sentences, tile_index);
  const int first =
      tile.first + static_cast<int>(threadIdx.x / kWarp) * kWarpRows;  // the warp's first query
  if (tile.is_spare(in.sentences)) {
    const int row = in.q_offsets[in.sentences] + first;
    return clear_rows(p.out + head * D, p.out_stride, D, row, row + kWarpRows, p.rows);
  }
  const SentenceSpan span(in, tile.sentence);
  if (tile.first >= span.queries || (p.skip_short_sentences && span.is_short())) return;
  const Bf16* q = head_columns(in.q, in.q_stride, span.first_query, head, D);
  const MatrixRows head_keys{
      head_columns(in.k, in.k_stride, span.first_key, head / in.heads_per_kv_head, D), in.k_stride};
  const MatrixRows head_values{
      head_columns(in.v, in.v_stride, span.first_key, head / in.heads_per_kv_head, D), in.v_stride};
  const SmemTile<D> tiles{shared_address(memory)};
  const SmemTile<D> warp_queries = tiles.tile(static_cast<int>(threadIdx.x / kWarp) * M);
  const DoubleBufferedRows<D> staged{tiles.tile(kWarps * M)};
  const int block_keys = span.visible_keys(min(tile.first + kWarps * kWarpRows, span.queries) - 1);
  if (block_keys > 0) staged.copy_async(0, head_keys, head_values, 0, span.keys);

    // A warp without queries loads zeros; its results are not written.
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int row = first + 16 * m;
    warp_queries.tile(m).copy_async(q + (row < span.queries ? row : 0) * in.q_stride, in.q_stride,
                                    span.queries - row);
  }
  wait_for_all_copies();
  __syncwarp();
  std::uint32_t query_fragments[D / 16][M][4];
#pragma unroll
  for (int i = 0; i < D / 16; ++i) load_blocks(query_fragments[i], LaneTiles<D>(warp_queries), i);
  const HeadBias bias(in.bias, head);
  const DropoutMask dropout_mask(in, tile.sentence, head);
  const float scale = in.scale * kLog2E;
  // Scores must be scaled before a bias is added, and before their maximum is taken if the scale is
  // not positive; otherwise the softmax scales them.
  const bool scaled_first = Terms == ScoreTerms::any && (bias.active || !(scale > 0));
  const int visible_to_all = span.visible_keys(first);
  const int visible_to_any =
      first < span.queries ? span.visible_keys(min(first + kWarpRows, span.queries) - 1) : 0;
  const LaneTiles<D> value_tiles(staged.memory),
      key_tiles = LaneTiles<D>::for_b_fragments(staged.memory);
  OnlineSoftmax softmax[M];
  float sums[M][D / 8][4] = {};
  const auto drop = [&](float(&x)[kStageKeys / 8][4], int query, int key) {
#pragma unroll
    for (int group = 0; group < kStageKeys; group += 32) {
      // Lane c of a quad draws the masks of eight keys for rows g and g + 8; the quad exchanges
      // them.
      const int lane_key = key + group + 8 * c;
      const std::uint32_t drawn =
          dropout_mask.mask8(query, lane_key) | dropout_mask.mask8(query + 8, lane_key) << 8;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const std::uint32_t bits = __shfl_sync(kAllLanes, drawn, (lane & ~3) + n) >> (2 * c);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if ((bits >> (e % 2 + e / 2 * 8) & 1) == 0) x[group / 8 + n][e] = 0;
        }
      }
    }
  };
  // Computes with the keys of a stage, from `key` on. Edge: some of them may be hidden from some of
  // the warp's queries.
  const auto step = [&]<bool Edge>(int key, int first_tile) {
    float x[M][kStageKeys / 8][4];
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
      multiply_transposed_block(x, query_fragments[i], key_tiles.from_tile(first_tile), i);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int query = first + 16 * m + g;
      if (scaled_first) scale_scores(x[m], scale, bias, key + 2 * c - (query + span.shift));
      if constexpr (Edge) {
        const int visible[2] = {span.visible_keys(query), span.visible_keys(query + 8)};
#pragma unroll
        for (int n = 0; n < kStageKeys / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if (key + 8 * n + 2 * c + e % 2 >= visible[e / 2]) x[m][n][e] = kLowest;
          }
        }
      }
      softmax[m].update(x[m], scaled_first ? 1.0f : scale, sums[m]);
      if (Terms == ScoreTerms::any && in.dropout.active()) drop(x[m], query, key);
    }
#pragma unroll
    for (int t = 0; t < DoubleBufferedRows<D>::kTiles; ++t) {
      add_product(sums, x, 2 * t,
                  value_tiles.from_tile(first_tile).tile(DoubleBufferedRows<D>::kTiles + t));
    }
  };
  for (int first_key = 0; first_key < block_keys; first_key += kStageKeys) {
    wait_for_all_copies();
    __syncthreads();  // these keys have arrived, and all warps have finished the previous ones
    const int stage = first_key / kStageKeys;
    if (first_key + kStageKeys < block_keys) {
      staged.copy_async(stage + 1, head_keys, head_values, first_key + kStageKeys, span.keys);
    }
    const int first_tile = DoubleBufferedRows<D>::first_tile(stage);
    if (first_key + kStageKeys <= visible_to_all) {
      step.template operator()<false>(first_key, first_tile);
    } else if (first_key < visible_to_any) {
      step.template operator()<true>(first_key, first_tile);
    }
  }

#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int row = first + 16 * m;
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const float total = quad_sum(softmax[m].total[u]);
      const float factor = total > 0 ? in.dropout.scale / total : 0.0f;
#pragma unroll
      for (int j = 0; j < D / 8; ++j) sums[m][j][2 * u] *= factor, sums[m][j][2 * u + 1] *= factor;
      if (p.log_sum != nullptr && c == 0 && row + g + 8 * u < span.queries) {
        p.log_sum[head * p.rows.capacity + span.first_query + row + g + 8 * u] =
            total > 0 ? (softmax[m].running_max[u] + log2f(total)) * kLn2 : 0.0f;
      }
    }
    const std::int64_t out_row = span.first_query + row;
    // The warp's tiles of queries are free now: the output is stored through them.
    warp_queries.tile(m).store(
        sums[m], 1.0f,
        {p.out + out_row * p.out_stride + head * D, p.out_stride, span.queries - row});
  }
}

template <int D, int M, ScoreTerms Terms>
void launch(CudaContext& ctx, const Arguments& p, std::int64_t max_queries) {
  constexpr int kBlockRows = kWarps * 16 * M;
  const TileOrder order = query_order(
      p.in, max_query_tiles(p.rows.capacity, p.in.sentences, kBlockRows), max_queries, kBlockRows);
  const dim3 grid(order.blocks(), static_cast<unsigned>(p.in.heads));
  allow_shared_memory(mma_kernel<D, M, Terms>, kBytes<D, M>);
  mma_kernel<D, M, Terms><<<grid, kWarps * kWarp, kBytes<D, M>, ctx.stream()>>>(p, order);
  check_launch("attention");
}

}  // namespace

void launch_mma_forward(CudaContext& ctx, const Arguments& p, std::int64_t max_queries) {
  dispatch_tiles(
      p.in, tiles_per_warp(p.in.width, max_queries),
      [&]<int D, int M, ScoreTerms Terms>() { launch<D, M, Terms>(ctx, p, max_queries); });
}

}  // namespace nunchi::kernels
