// Attention on the tensor cores, for sentences of any length: four warps take 16 or 32 queries each
// and loop together over the keys. While they compute with some keys, the next are copied to shared
// memory.
#include <limits>

#include "nunchi/kernels/cuda/attention/attention_common.h"
#include "nunchi/kernels/cuda/attention/attention_exact.h"
#include "nunchi/kernels/cuda/common/smem_tile_products.h"

namespace nunchi::kernels {
namespace {

using Bf16 = __nv_bfloat16;
using Arguments = ForwardArguments<Bf16>;

constexpr int kWarps = 4;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The online softmax of sixteen queries. Scores are base-2 exponents.
struct OnlineSoftmax {
  float top[2] = {kLowest, kLowest};
  float total[2] = {0, 0};  // over this lane's keys

  // Turns scores, `factor` times x, into weights relative to the highest score so far, and rescales
  // the earlier sums.
  template <int N, int Columns>
  __device__ void update(float (&x)[N][4], float factor, float (&sums)[Columns][4]) {
    float base[2], rescale[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      float highest = kLowest;
#pragma unroll
      for (int n = 0; n < N; ++n) highest = fmaxf(highest, fmaxf(x[n][2 * u], x[n][2 * u + 1]));
      highest = fmaxf(top[u], quad_max(highest) * factor);
      // A query that has seen no key yet has no highest score.
      base[u] = highest == kLowest ? 0.0f : highest;
      rescale[u] = fast_exp2(top[u] - base[u]);
      top[u] = highest;
    }
    // A new highest score is rare after the first keys.
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
    mma_kernel(Arguments p, SlotOrder order) {
  constexpr int kRows = 16 * M, kStage = DoubleBufferedRows<D>::kRows;
  extern __shared__ __align__(LaneTiles<D>::kAligned) uint4 memory[];
  const AttentionArguments<Bf16>& in = p.in;
  const int lane = lane_of_thread(), g = lane / 4, c = lane % 4, head = blockIdx.y;
  int slot;
  if (!order.find_slot(static_cast<int>(blockIdx.x), slot)) return;
  const Tile tile = query_tile<kWarps * kRows>(in.q_offsets, in.sentences, slot);
  const int first =
      tile.first + static_cast<int>(threadIdx.x / kWarp) * kRows;  // the warp's first query
  if (tile.sentence == in.sentences) {
    const int row = in.q_offsets[in.sentences] + first;
    return clear_rows(p.out + head * D, p.out_stride, D, row, row + kRows, p.rows);
  }
  const SentenceSpan span(in, tile.sentence);
  if (tile.first >= span.queries || (p.short_separately && span.is_short())) return;
  const Bf16* q = head_columns(in.q, in.q_stride, span.first_query, head, D);
  const MatrixRows head_keys{head_columns(in.k, in.k_stride, span.first_key, head / in.group, D),
                             in.k_stride};
  const MatrixRows head_values{head_columns(in.v, in.v_stride, span.first_key, head / in.group, D),
                               in.v_stride};
  const SmemTile<D> tiles{shared_address(memory)};
  const SmemTile<D> warp_queries = tiles.next(static_cast<int>(threadIdx.x / kWarp) * M);
  const DoubleBufferedRows<D> staged{tiles.next(kWarps * M)};
  const int block_keys = span.visible(min(tile.first + kWarps * kRows, span.queries) - 1);
  if (block_keys > 0) staged.copy_async(0, head_keys, head_values, 0, span.keys);

    // A warp without queries copies zeros, which see no key.
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int row = first + 16 * m;
    warp_queries.next(m).copy_async(q + (row < span.queries ? row : 0) * in.q_stride, in.q_stride,
                                    span.queries - row);
  }
  wait_for_all_copies();
  __syncwarp();
  std::uint32_t words[D / 16][M][4];
#pragma unroll
  for (int i = 0; i < D / 16; ++i) load_blocks(words[i], LaneTiles<D>(warp_queries), i);
  const HeadBias bias(in.bias, head);
  const DropoutMask dropout_mask(in, tile.sentence, head);
  const float scale = in.scale * kLog2E;
  // Scores must be scaled before a bias is added, and before their maximum is taken if the scale is
  // not positive; otherwise the softmax scales them.
  const bool scaled_first = Terms == ScoreTerms::any && (bias.active || !(scale > 0));
  const int visible_to_all = span.visible(first);
  const int keys = first < span.queries ? span.visible(min(first + kRows, span.queries) - 1) : 0;
  const LaneTiles<D> staged_tiles(staged.memory), paired = LaneTiles<D>::paired(staged.memory);
  OnlineSoftmax softmax[M];
  float sums[M][D / 8][4] = {};
  const auto drop = [&](float(&x)[kStage / 8][4], int query, int key) {
#pragma unroll
    for (int group = 0; group < kStage; group += 32) {
      // Lane c draws eight keys for both rows; the four lanes of a row exchange their bits.
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
    float x[M][kStage / 8][4];
#pragma unroll
    for (int i = 0; i < D / 16; ++i) add_dots(x, words[i], paired.moved(first_tile), i);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int query = first + 16 * m + g;
      if (scaled_first) scale_scores(x[m], scale, bias, key + 2 * c - (query + span.shift));
      if constexpr (Edge) {
        const int visible[2] = {span.visible(query), span.visible(query + 8)};
#pragma unroll
        for (int n = 0; n < kStage / 8; ++n) {
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
                  staged_tiles.moved(first_tile).next(DoubleBufferedRows<D>::kTiles + t));
    }
  };
  for (int stage = 0; stage < block_keys; stage += kStage) {
    wait_for_all_copies();
    __syncthreads();  // these keys have arrived, and all warps have finished the previous ones
    if (stage + kStage < block_keys) {
      staged.copy_async(stage / kStage + 1, head_keys, head_values, stage + kStage, span.keys);
    }
    const int first_tile = DoubleBufferedRows<D>::first_tile(stage / kStage);
    if (stage + kStage <= visible_to_all) {
      step.template operator()<false>(stage, first_tile);
    } else if (stage < keys) {
      step.template operator()<true>(stage, first_tile);
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
            total > 0 ? (softmax[m].top[u] + log2f(total)) * kLn2 : 0.0f;
      }
    }
    const std::int64_t out_row = span.first_query + row;
    warp_queries.next(m).store(
        sums[m], 1.0f,
        {p.out + out_row * p.out_stride + head * D, p.out_stride, span.queries - row});
  }
}

template <int D, int M, ScoreTerms Terms>
void launch(CudaContext& ctx, const Arguments& p, std::int64_t max_queries) {
  constexpr int kRows = kWarps * 16 * M;
  const SlotOrder order =
      query_order(p.in, query_slots(p.rows.capacity, p.in.sentences, kRows), max_queries, kRows);
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
