// Attention on the tensor cores, for sentences of any length: four warps take 16 or 32 queries each
// and go through the keys together. While they compute with some keys, the next ones are on their
// way to shared memory.
#include <limits>

#include "nunchi/kernels/cuda/attention_heads.h"
#include "nunchi/kernels/cuda/attention_scores.h"
#include "nunchi/kernels/cuda/shared_tile.h"

namespace nunchi::kernels::cuda {
namespace {

using Bf16 = __nv_bfloat16;
using Job = Forward<Bf16>;

constexpr int kWarps = 4;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Sixteen queries of one head on their way through the keys. Scores are in units of log 2.
template <int D>
struct QueryTile {
  std::uint32_t words[D / 16][4];
  float sums[D / 8][4] = {};
  float top[2] = {kLowest, kLowest};
  float total[2] = {0, 0};  // of this lane's keys

  // Weights of 32 keys, relative to the highest score so far; what was summed before follows.
  __device__ void weigh(float (&x)[4][4]) {
    float base[2], shrink[2];
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      float highest = kLowest;
#pragma unroll
      for (int n = 0; n < 4; ++n) highest = fmaxf(highest, fmaxf(x[n][2 * u], x[n][2 * u + 1]));
      highest = fmaxf(top[u], quad_max(highest));
      // A query that has seen no key yet has no highest score.
      base[u] = highest == kLowest ? 0.0f : highest;
      shrink[u] = exp2_approximate(top[u] - base[u]);
      top[u] = highest;
    }
    // After some keys a new highest score is rare.
    if (__any_sync(kAllLanes, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        total[u] *= shrink[u];
#pragma unroll
        for (int j = 0; j < D / 8; ++j) {
          sums[j][2 * u] *= shrink[u], sums[j][2 * u + 1] *= shrink[u];
        }
      }
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

// Shared memory: the queries, each warp's its own, and the keys with their values.
template <int D, int M>
constexpr int kBytes = kWarps* M* SharedTile<D>::kBytes + StagedRows<D>::kBytes;

// Blocks that a multiprocessor should hold at once: what the registers of a tile allow.
template <int D, int M>
constexpr int kBlocks = M == 2 || D == 128 ? 2
                        : D == 64          ? 3
                                           : 4;

template <int D, int M>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<D, M>) mma_kernel(Job p) {
  constexpr int kRows = 16 * M, kStage = StagedRows<D>::kRows;
  extern __shared__ uint4 memory[];
  const Heads<Bf16>& in = p.in;
  const int lane = threadIdx.x % kWarp, g = lane / 4, c = lane % 4, head = blockIdx.y;
  // Of a causal sentence the last queries see the most keys: they start first.
  const int slot = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const Tile tile = query_tile<kWarps * kRows>(in.q_offsets, in.sentences, slot);
  const int first = tile.first + static_cast<int>(threadIdx.x / kWarp) * kRows;  // the warp's
  if (tile.sentence == in.sentences) {
    const int row = in.q_offsets[in.sentences] + first;
    return clear_rows(p.out + head * D, p.out_stride, D, row, row + kRows, p.rows);
  }
  const Span span(in, tile.sentence);
  if (tile.first >= span.queries || (p.short_apart && span.is_short())) return;
  const Bf16* q = head_of(in.q, in.q_stride, span.first_query, head, D);
  const Bf16* k = head_of(in.k, in.k_stride, span.first_key, head / in.group, D);
  const Bf16* v = head_of(in.v, in.v_stride, span.first_key, head / in.group, D);
  const SharedTile<D> all{shared_address(memory)};
  const SharedTile<D> own = all.next(static_cast<int>(threadIdx.x / kWarp) * M);
  const StagedRows<D> staged{all.next(kWarps * M)};
  const int block_keys = span.visible(min(tile.first + kWarps * kRows, span.queries) - 1);
  if (block_keys > 0) staged.fetch(0, k, in.k_stride, v, in.v_stride, 0, span.keys);

  // Of a warp without queries too: they are zeros that see nothing.
  QueryTile<D> queries[M];
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const int row = first + 16 * m;
    own.next(m).fetch(q + (row < span.queries ? row : 0) * in.q_stride, in.q_stride,
                      span.queries - row);
  }
  wait_for_copies();
  __syncwarp();
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      load_block(queries[m].words[i], own.next(m).block(i));
    }
  }
  const HeadBias bias(in.bias, head);
  const KeepBits keep(in, tile.sentence, head);
  const float scale = in.scale * kLog2E;
  const int everyone_sees = span.visible(first);
  const int keys = first < span.queries ? span.visible(min(first + kRows, span.queries) - 1) : 0;
  for (int stage = 0; stage < block_keys; stage += kStage) {
    wait_for_copies();
    __syncthreads();  // these keys are there, and everyone is through with the last ones
    if (stage + kStage < block_keys) {
      staged.fetch(stage / kStage + 1, k, in.k_stride, v, in.v_stride, stage + kStage, span.keys);
    }
#pragma unroll 1
    for (int key = stage; key < min(stage + kStage, keys); key += 32) {
      const int at = (key - stage) / kTileRows;
      const SharedTile<D> key_tiles = staged.first(stage / kStage).next(at);
      const SharedTile<D> value_tiles = staged.second(stage / kStage).next(at);
      float x[M][4][4] = {};
#pragma unroll
      for (int t = 0; t < 2; ++t) {
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          std::uint32_t b[4];
          load_block(b, key_tiles.next(t).block(i));
#pragma unroll
          for (int m = 0; m < M; ++m) {
            mma(x[m][2 * t], queries[m].words[i], b[0], b[2]);
            mma(x[m][2 * t + 1], queries[m].words[i], b[1], b[3]);
          }
        }
      }
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const int query = first + 16 * m + g;
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
          const std::uint32_t drawn = keep.of(query, key + 8 * c) | keep.of(query + 8, key + 8 * c)
                                                                        << 8;
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            const std::uint32_t bits = __shfl_sync(kAllLanes, drawn, (lane & ~3) + n) >> (2 * c);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if ((bits >> (e % 2 + e / 2 * 8) & 1) == 0) x[m][n][e] = 0;
            }
          }
        }
      }
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        std::uint32_t a[M][4];
#pragma unroll
        for (int m = 0; m < M; ++m) to_a(a[m], x[m][2 * t], x[m][2 * t + 1]);
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
          std::uint32_t b[4];
          load_block_transposed(b, value_tiles.next(t).block(i));
#pragma unroll
          for (int m = 0; m < M; ++m) {
            mma(queries[m].sums[2 * i], a[m], b[0], b[1]);
            mma(queries[m].sums[2 * i + 1], a[m], b[2], b[3]);
          }
        }
      }
    }
  }

#pragma unroll
  for (int m = 0; m < M; ++m) {
    QueryTile<D>& done = queries[m];
    const int row = first + 16 * m;
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const float total = quad_sum(done.total[u]);
      const float factor = total > 0 ? in.draws.scale / total : 0.0f;
#pragma unroll
      for (int j = 0; j < D / 8; ++j)
        done.sums[j][2 * u] *= factor, done.sums[j][2 * u + 1] *= factor;
      if (p.log_sum != nullptr && c == 0 && row + g + 8 * u < span.queries) {
        p.log_sum[head * p.rows.capacity + span.first_query + row + g + 8 * u] =
            total > 0 ? (done.top[u] + log2f(total)) * kLn2 : 0.0f;
      }
    }
    const std::int64_t at = span.first_query + row;
    own.next(m).store(done.sums, 1.0f, p.out + at * p.out_stride + head * D, p.out_stride,
                      span.queries - row);
  }
}

// Sentences of which tiles of 32 queries for a warp leave little unused.
constexpr std::int64_t kLongSentence = 256;

template <int D, int M>
void start(CudaContext& ctx, const Job& p) {
  const std::int64_t slots = query_slots(p.rows.capacity, p.in.sentences, kWarps * 16 * M);
  const dim3 grid(static_cast<unsigned>(slots), static_cast<unsigned>(p.in.heads));
  allow_shared_memory(mma_kernel<D, M>, kBytes<D, M>);
  mma_kernel<D, M><<<grid, kWarps * kWarp, kBytes<D, M>, ctx.stream()>>>(p);
  check_launch("attention");
}

}  // namespace

void start_mma_forward(CudaContext& ctx, const Job& p, std::int64_t max_queries) {
  const bool long_ones = max_queries >= kLongSentence;
  if (p.in.width == 32) return long_ones ? start<32, 2>(ctx, p) : start<32, 1>(ctx, p);
  if (p.in.width == 64) return long_ones ? start<64, 2>(ctx, p) : start<64, 1>(ctx, p);
  start<128, 1>(ctx, p);
}

}  // namespace nunchi::kernels::cuda
