// Forward attention of short sentences: all scores of a query are in registers at once, so
// that its softmax takes one pass.
#include "nunchi/kernels/cuda/attention/attention_short.h"

#include <limits>

#include "nunchi/kernels/cuda/attention/attention_rows.h"

namespace nunchi::kernels {
namespace {

using Bf16 = __nv_bfloat16;
using Arguments = ForwardArguments<Bf16>;

constexpr float kLowest = -std::numeric_limits<float>::infinity();
// Blocks per multiprocessor that run at once.
template <int D>
constexpr int kBlocksPerMultiprocessor = D == 32 ? 6 : 5;

template <int D>
constexpr int kMatrixBytes = kShortTiles* SmemTile<D>::kBytes;

template <int D, bool Biased>
__global__ void __launch_bounds__(kShortWarps* kWarp, kBlocksPerMultiprocessor<D>)
    short_kernel(Arguments p, ShortGrid grid) {
  extern __shared__ uint4 memory[];
  const AttentionArguments<Bf16>& in = p.in;
  if (static_cast<int>(blockIdx.x) >= grid.blocks) {
    return clear_spare_rows(grid, p.out, p.out_stride, in.heads * D, p.rows);
  }
  ShortWork work(grid);
  const SentenceSpan span(in, work.sentence);
  work.assign(grid, span);
  if (work.idle) return;
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
  const int head = work.head, first = work.head_warp * kTileRows, query = first + g;
  const bool has_queries = first < span.queries;

  const SmemTile<D> tiles{shared_address(memory)};
  const SmemTile<D> q = tiles.tile(work.first_tile + work.head_warp);
  const SmemTile<D> k = tiles.tile(kShortTiles + work.first_tile);
  const SmemTile<D> v = k.tile(kShortTiles);
  if (has_queries) {
    q.copy_async(head_columns(in.q, in.q_stride, span.first_query + first, head, D), in.q_stride,
                 span.queries - first);
  }
  if (first < span.keys) {
    const int row = span.first_key + first, kv_head = head / in.heads_per_kv_head;
    k.tile(work.head_warp)
        .copy_async(head_columns(in.k, in.k_stride, row, kv_head, D), in.k_stride,
                    span.keys - first);
    v.tile(work.head_warp)
        .copy_async(head_columns(in.v, in.v_stride, row, kv_head, D), in.v_stride,
                    span.keys - first);
  }
  ShortDropoutMask dropout_mask;
  if (has_queries) dropout_mask.draw(in, work.sentence, head, query, span.keys);
  wait_for_all_copies();
  __syncthreads();
  if (!has_queries) return;

  const int visible_to_any = span.visible_keys(min(first + kTileRows, span.queries) - 1);
  const int visible_to_all = span.visible_keys(first);
  // Numbers of visible keys, counted from the lane's first column 2c.
  const int visible[2] = {span.visible_keys(query) - 2 * c, span.visible_keys(query + 8) - 2 * c};
  const float scale = in.scale * kLog2E;
  float x[2 * kShortTiles][4];  // scores as base-2 exponents, then weights
  float max_score[2] = {kLowest, kLowest}, total[2] = {0, 0};
  {
    std::uint32_t q_fragments[D / 16][4];
#pragma unroll
    for (int i = 0; i < D / 16; ++i) load_block(q_fragments[i], q.block(i));
#pragma unroll
    for (int t = 0; t < kShortTiles; ++t) {
      if (kTileRows * t >= visible_to_any) break;
#pragma unroll
      for (int e = 0; e < 4; ++e) x[2 * t][e] = x[2 * t + 1][e] = 0;
#pragma unroll
      for (int i = 0; i < D / 16; ++i) {
        std::uint32_t b[4];
        load_block(b, k.tile(t).block(i));
        mma(x[2 * t], q_fragments[i], b[0], b[2]);
        mma(x[2 * t + 1], q_fragments[i], b[1], b[3]);
      }
    }
  }
  const HeadBias bias(in.bias, head);
#pragma unroll
  for (int t = 0; t < kShortTiles; ++t) {
    if (kTileRows * t >= visible_to_any) break;
#pragma unroll
    for (int n = 2 * t; n < 2 * t + 2; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        x[n][e] *= scale;
        if constexpr (Biased) {
          const int relative = 8 * n + 2 * c - (query + span.shift) + e % 2 - e / 2 * 8;
          x[n][e] += bias.at(relative) * kLog2E;
        }
      }
    }
    if (kTileRows * (t + 1) > visible_to_all) {
#pragma unroll
      for (int n = 2 * t; n < 2 * t + 2; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (8 * n + e % 2 >= visible[e / 2]) x[n][e] = kLowest;
        }
      }
    }
#pragma unroll
    for (int n = 2 * t; n < 2 * t + 2; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) max_score[e / 2] = fmaxf(max_score[e / 2], x[n][e]);
    }
  }
  float base[2];
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    max_score[u] = quad_max(max_score[u]);
    base[u] = max_score[u] == kLowest ? 0.0f : max_score[u];  // a query may see no key
  }

  float sums[D / 8][4] = {};
#pragma unroll
  for (int t = 0; t < kShortTiles; ++t) {
    if (kTileRows * t >= visible_to_any) break;
#pragma unroll
    for (int n = 2 * t; n < 2 * t + 2; ++n) {
      const std::uint32_t bits = dropout_mask.bits(n);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float weight = fast_exp2(x[n][e] - base[e / 2]);
        total[e / 2] += weight;
        x[n][e] = ShortDropoutMask::kept(bits, e) ? weight : 0.0f;
      }
    }
    std::uint32_t a[4];
    to_a(a, x[2 * t], x[2 * t + 1]);
    add_product<D>(sums, a, v.tile(t));
  }

  const std::int64_t row = span.first_query + first;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    total[u] = quad_sum(total[u]);
    if (p.log_sum != nullptr && c == 0 && query + 8 * u < span.queries) {
      p.log_sum[head * p.rows.capacity + row + g + 8 * u] =
          total[u] > 0 ? (max_score[u] + log2f(total[u])) * kLn2 : 0.0f;
    }
    const float factor = total[u] > 0 ? in.dropout.scale / total[u] : 0.0f;
#pragma unroll
    for (int j = 0; j < D / 8; ++j) sums[j][2 * u] *= factor, sums[j][2 * u + 1] *= factor;
  }
  q.store(sums, 1.0f, {p.out + row * p.out_stride + head * D, p.out_stride, span.queries - first});
}

template <int D, bool Biased>
void launch(CudaContext& ctx, const Arguments& p, std::int64_t longest) {
  const ShortGrid grid(p.in.sentences, p.in.heads, longest);
  const unsigned clearing = longest <= kMaxShort ? clearing_blocks(p.rows.capacity) : 0;
  if (grid.blocks + clearing == 0) return;
  allow_shared_memory(short_kernel<D, Biased>, 3 * kMatrixBytes<D>);
  short_kernel<D, Biased>
      <<<grid.blocks + clearing, kShortWarps * kWarp, 3 * kMatrixBytes<D>, ctx.stream()>>>(p, grid);
  check_launch("attention, short sentences");
}

}  // namespace

void launch_short_forward(CudaContext& ctx, const Arguments& p, std::int64_t longest) {
  const bool biased = p.in.bias.slopes != nullptr || p.in.bias.by_distance != nullptr;
  if (p.in.width == 32) {
    return biased ? launch<32, true>(ctx, p, longest) : launch<32, false>(ctx, p, longest);
  }
  biased ? launch<64, true>(ctx, p, longest) : launch<64, false>(ctx, p, longest);
}

}  // namespace nunchi::kernels
