// Gradients of short sentences in one kernel: a warp computes the weights and score gradients of 16
// queries once and stores them in shared memory; then the same warps take 16 keys each.
#include <limits>

#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/attention/attention_short.h"

namespace nunchi::kernels {
namespace {

using Bf16 = __nv_bfloat16;
using Arguments = BackwardArguments<Bf16>;

constexpr float kHighest = std::numeric_limits<float>::infinity();

// The head's first tile of each matrix in shared memory; [queries, keys] matrices have rows of 64.
template <int D>
struct Matrices {
  static constexpr int kBytes =
      kShortTiles * (5 * SmemTile<D>::kBytes + 2 * SmemTile<kMaxShort>::kBytes);

  SmemTile<D> q, d_out, out, k, v;
  SmemTile<kMaxShort> weights, d_scores;

  __device__ Matrices(const void* memory, int first_tile)
      : q(SmemTile<D>{shared_address(memory)}.tile(first_tile)),
        d_out(q.tile(kShortTiles)),
        out(d_out.tile(kShortTiles)),
        k(out.tile(kShortTiles)),
        v(k.tile(kShortTiles)),
        weights(SmemTile<kMaxShort>{shared_address(memory) + kShortTiles * 5 * SmemTile<D>::kBytes}
                    .tile(first_tile)),
        d_scores(weights.tile(kShortTiles)) {}
};

// For the 16 queries from `first` on: computes d_q, and stores the weights and score gradients from
// which d_k and d_v are computed.
template <int D, bool Plain>
__device__ void queries_backward(const Arguments& p, const SentenceSpan& span, const Matrices<D>& m,
                                 int head, int first, const ShortDropoutMask& dropout_mask,
                                 const float (&log_sum)[2]) {
  const AttentionArguments<Bf16>& in = p.in;
  const int g = threadIdx.x % kWarp / 4, c = threadIdx.x % 4;
  const int tile = first / kTileRows, query = first + g;
  const SmemTile<D> q = m.q.tile(tile), d_out = m.d_out.tile(tile);
  float delta[2];
  row_dots<D>(delta, d_out, m.out.tile(tile));

  const HeadBias bias(in.bias, head);
  const float scale = in.scale * kLog2E;
  const int keys = span.visible_keys(min(first + kTileRows, span.queries) - 1);
  const int visible_to_all = span.visible_keys(first);
  const int visible[2] = {span.visible_keys(query), span.visible_keys(query + 8)};
  float sums[D / 8][4] = {};
#pragma unroll 1
  for (int key = 0; key < keys; key += kTileRows) {
    const SmemTile<D> k = m.k.tile(key / kTileRows), v = m.v.tile(key / kTileRows);
    float x[2][4] = {}, d_x[2][4] = {};
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      std::uint32_t a[4], b[4];
      load_block(a, q.block(i));
      load_block(b, k.block(i));
      mma(x[0], a, b[0], b[2]);
      mma(x[1], a, b[1], b[3]);
      load_block(a, d_out.block(i));
      load_block(b, v.block(i));
      mma(d_x[0], a, b[0], b[2]);
      mma(d_x[1], a, b[1], b[3]);
    }
    const bool edge = key + kTileRows > visible_to_all;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const std::uint32_t bits = dropout_mask.bits(key / 8 + n);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int lane_key = key + 8 * n + 2 * c + e % 2;
        float exponent = x[n][e] * scale - log_sum[e / 2];
        if constexpr (!Plain) {
          if (bias.active)
            exponent += bias.at(lane_key - (query + e / 2 * 8 + span.shift)) * kLog2E;
        }
        float weight = fast_exp2(exponent);
        if (edge && lane_key >= visible[e / 2]) weight = 0;
        const bool kept = ShortDropoutMask::kept(bits, e);
        const float d_weight = kept ? d_x[n][e] * in.dropout.scale : 0.0f;
        d_x[n][e] = weight * (d_weight - delta[e / 2]);
        x[n][e] = kept ? weight : 0.0f;
      }
    }
    std::uint32_t a[4];
    to_a(a, x[0], x[1]);
    store_block(m.weights.tile(tile).block(key / kTileRows), a);
    to_a(a, d_x[0], d_x[1]);
    store_block(m.d_scores.tile(tile).block(key / kTileRows), a);
    add_product<D>(sums, a, k);
  }
  write_rows<D>(m.out.tile(tile), sums, in.scale,
                {p.d_q + (span.first_query + first) * p.d_q_stride + head * D, p.d_q_stride,
                 span.queries - first, p.accumulate_q});
}

// sums += aᵀ b, where a is the columns of 16 keys from `first` on in a tile `scores` [queries,
// keys], and b is `rows`.
template <int D>
__device__ void add_transposed(float (&sums)[D / 8][4], const SmemTile<kMaxShort>& scores,
                               int first, const SmemTile<D>& rows) {
  std::uint32_t block[4];
  load_block_transposed(block, scores.block(first / kTileRows));
  const std::uint32_t a[4] = {block[0], block[2], block[1], block[3]};
  add_product<D>(sums, a, rows);
}

// Blocks per multiprocessor that run at once.
template <int D, bool Plain>
constexpr int kBlocksPerMultiprocessor = !Plain    ? 3
                                         : D == 32 ? 5
                                                   : 4;

// Plain: no bias, and each head has its own keys. Then nothing is summed over heads, so the two
// halves of the work need registers only one after the other.
template <int D, bool Plain>
__global__ void __launch_bounds__(kShortWarps* kWarp, kBlocksPerMultiprocessor<D, Plain>)
    short_kernel(Arguments p, ShortGrid grid) {
  extern __shared__ uint4 memory[];
  const AttentionArguments<Bf16>& in = p.in;
  if (static_cast<int>(blockIdx.x) >= grid.blocks) {
    const int width = grid.heads * D;
    if (!p.accumulate_q) {
      clear_spare_rows(grid, p.d_q, p.d_q_stride, in.heads * D, p.rows);
    }
    if (!p.accumulate_k) clear_spare_rows(grid, p.d_k, p.d_k_stride, width, p.key_rows);
    if (!p.accumulate_v) clear_spare_rows(grid, p.d_v, p.d_v_stride, width, p.key_rows);
    return;
  }
  ShortWork work(grid);
  const SentenceSpan span(in, work.sentence);
  work.assign(grid, span);
  if (work.idle) return;
  const int g = threadIdx.x % kWarp / 4, first = work.head_warp * kTileRows;
  const bool has_queries = first < span.queries, has_keys = first < span.keys;
  const int row = span.first_query + first, key_row = span.first_key + first;
  const Matrices<D> m(memory, work.first_tile);
  if (has_keys) {
    m.k.tile(work.head_warp)
        .copy_async(head_columns(in.k, in.k_stride, key_row, work.head, D), in.k_stride,
                    span.keys - first);
    m.v.tile(work.head_warp)
        .copy_async(head_columns(in.v, in.v_stride, key_row, work.head, D), in.v_stride,
                    span.keys - first);
  }

  float d_k[D / 8][4] = {}, d_v[D / 8][4] = {};
  const int heads_per_kv_head = Plain ? 1 : in.heads_per_kv_head;
  for (int i = 0; i < heads_per_kv_head; ++i) {
    const int head = work.head * heads_per_kv_head + i;
    if (i > 0) __syncthreads();  // all warps have finished the previous head
    ShortDropoutMask dropout_mask;
    float log_sum[2] = {kHighest, kHighest};  // makes the weights of missing queries zero
    if (has_queries) {
      const int count = span.queries - first;
      m.q.tile(work.head_warp)
          .copy_async(head_columns(in.q, in.q_stride, row, head, D), in.q_stride, count);
      m.d_out.tile(work.head_warp)
          .copy_async(head_columns(p.d_out, p.d_out_stride, row, head, D), p.d_out_stride, count);
      m.out.tile(work.head_warp)
          .copy_async(head_columns(p.out, p.out_stride, row, head, D), p.out_stride, count);
      const float* log_sums = p.log_sum + head * p.rows.capacity + row;
      if (g < count) log_sum[0] = log_sums[g] * kLog2E;
      if (g + 8 < count) log_sum[1] = log_sums[g + 8] * kLog2E;
      dropout_mask.draw(in, work.sentence, head, first + g, span.keys);
    }
    wait_for_all_copies();
    __syncthreads();
    if (has_queries) queries_backward<D, Plain>(p, span, m, head, first, dropout_mask, log_sum);
    __syncthreads();
    if (!has_keys) continue;
#pragma unroll 1
    for (int query = 0; query < span.queries; query += kTileRows) {
      // Queries that see none of these keys stored nothing for them.
      if (span.visible_keys(min(query + kTileRows, span.queries) - 1) <= first) continue;
      const int tile = query / kTileRows;
      add_transposed<D>(d_v, m.weights.tile(tile), first, m.d_out.tile(tile));
      add_transposed<D>(d_k, m.d_scores.tile(tile), first, m.q.tile(tile));
    }
  }
  if (!has_keys) return;
  write_rows<D>(m.k.tile(work.head_warp), d_k, in.scale,
                {p.d_k + key_row * p.d_k_stride + work.head * D, p.d_k_stride, span.keys - first,
                 p.accumulate_k});
  write_rows<D>(m.v.tile(work.head_warp), d_v, in.dropout.scale,
                {p.d_v + key_row * p.d_v_stride + work.head * D, p.d_v_stride, span.keys - first,
                 p.accumulate_v});
}

template <int D, bool Plain>
void launch(CudaContext& ctx, const Arguments& p, std::int64_t longest) {
  const AttentionArguments<Bf16>& in = p.in;
  const ShortGrid grid(in.sentences, in.heads / in.heads_per_kv_head, longest);
  const unsigned clearing =
      longest <= kMaxShort ? clearing_blocks(std::max(p.rows.capacity, p.key_rows.capacity)) : 0;
  if (grid.blocks + clearing == 0) return;
  allow_shared_memory(short_kernel<D, Plain>, Matrices<D>::kBytes);
  short_kernel<D, Plain>
      <<<grid.blocks + clearing, kShortWarps * kWarp, Matrices<D>::kBytes, ctx.stream()>>>(p, grid);
  check_launch("attention_backward, short sentences");
}

}  // namespace

void launch_short_backward(CudaContext& ctx, const Arguments& p, std::int64_t longest) {
  const AttentionArguments<Bf16>& in = p.in;
  const bool plain =
      in.heads_per_kv_head == 1 && in.bias.slopes == nullptr && in.bias.by_distance == nullptr;
  if (in.width == 32) {
    return plain ? launch<32, true>(ctx, p, longest) : launch<32, false>(ctx, p, longest);
  }
  plain ? launch<64, true>(ctx, p, longest) : launch<64, false>(ctx, p, longest);
}

}  // namespace nunchi::kernels
