// Attention's gradients in f32 arithmetic: one warp per query, then one warp per key. The tensor
// cores' kernels are in attention_backward_mma.cu and attention_backward_keys.cu.
#include "nunchi/device/arena.h"
#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cuda/attention/attention_backward.h"
#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/attention/attention_short.h"
#include "nunchi/kernels/cuda/common/smem_tile.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// A lane computes one key at a time. When d_q is summed, it holds columns.
template <class N, int ColumnsPerLane>
__global__ void __launch_bounds__(kThreads) queries_kernel(BackwardArguments<N> p) {
  extern __shared__ float table_sums[];
  __shared__ __align__(16) float q_rows[kWarps][32 * ColumnsPerLane],
      d_out_rows[kWarps][32 * ColumnsPerLane];
  const AttentionArguments<N>& in = p.in;
  const int warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int lane = lane_of_thread(), head = blockIdx.y;
  if (blockIdx.x == 0) {
    if (head == 0 && warp == 0) count_key_tiles(1, in.k_length, in.sentences, p.key_starts);
    return;
  }
  const int tile_index = (blockIdx.x - 1) * warps + warp;
  const Tile tile = query_tile<1>(in.q_offsets, in.sentences, tile_index);
  BucketGradients table(p, table_sums, warp);
  float* table_partial =
      p.table_partials + (std::int64_t{tile_index} * in.heads + head) * in.bias.buckets;
  if (tile.is_spare(in.sentences)) {
    const int row = in.q_offsets[in.sentences] + tile.first;
    if (!p.accumulate_q) {
      clear_rows(p.d_q + head * in.width, p.d_q_stride, in.width, row, row + 1, p.rows);
    }
    return table.store(table_partial);
  }
  const SentenceSpan span(in, tile.sentence);
  const int query = tile.first;
  if (query >= span.queries) return table.store(table_partial);
  const int row = span.first_query + query;
  float *q = q_rows[warp], *d_out = d_out_rows[warp];
  load_row<ColumnsPerLane>(q, head_columns(in.q, in.q_stride, row, head, in.width), in.width);
  load_row<ColumnsPerLane>(d_out, head_columns(p.d_out, p.d_out_stride, row, head, in.width),
                           in.width);
  const N* out = head_columns(p.out, p.out_stride, row, head, in.width);
  float delta = 0;
  for (int d = lane; d < in.width; d += kWarp) delta += d_out[d] * to_float(out[d]);
  delta = warp_sum(delta);
  const std::int64_t head_row = head * p.rows.capacity + row;
  if (lane == 0) p.delta[head_row] = delta;

  const N* k =
      head_columns(in.k, in.k_stride, span.first_key, head / in.heads_per_kv_head, in.width);
  const N* v =
      head_columns(in.v, in.v_stride, span.first_key, head / in.heads_per_kv_head, in.width);
  const HeadBias bias(in.bias, head);
  const DropoutMask dropout_mask(in, tile.sentence, head);
  const float log_sum = p.log_sum[head_row];
  float sums[ColumnsPerLane] = {};
  const int keys = span.visible_keys(query);
  for (int key = 0; key < keys; key += kWarp) {
    const int lane_key = key + lane, relative = lane_key - (query + span.shift);
    float d_score = 0;
    if (lane_key < keys) {
      float score = dot(q, k + lane_key * in.k_stride, in.width, in.aligned) * in.scale;
      if (bias.active) score += bias.at(relative);
      float d_weight = dot(d_out, v + lane_key * in.v_stride, in.width, in.aligned);
      if (in.dropout.active()) {
        const bool kept = dropout_mask.mask8(query, lane_key & ~7) >> (lane_key & 7) & 1;
        d_weight = kept ? d_weight * in.dropout.scale : 0.0f;
      }
      d_score = expf(score - log_sum) * (d_weight - delta);
      if (table.active()) table.add(relative, d_score);
    }
    add_weighted<ColumnsPerLane>(sums, d_score, k + key * in.k_stride, in.k_stride,
                                 min(kWarp, keys - key), in.width);
  }
  store_columns<ColumnsPerLane>(p.d_q + row * p.d_q_stride + std::int64_t{head} * in.width, sums,
                                in.scale, in.width, p.accumulate_q);
  table.store(table_partial);
}

// A lane computes one query at a time. When d_k and d_v are summed, it holds columns.
template <class N, int ColumnsPerLane>
__global__ void __launch_bounds__(kThreads) keys_kernel(BackwardArguments<N> p) {
  __shared__ __align__(16) float k_rows[kWarps][32 * ColumnsPerLane],
      v_rows[kWarps][32 * ColumnsPerLane];
  const AttentionArguments<N>& in = p.in;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, kv_head = blockIdx.y;
  const Tile tile =
      key_tile<1>(p.key_starts, in.sentences, static_cast<int>(blockIdx.x * kWarps) + warp);
  const std::int64_t column = std::int64_t{kv_head} * in.width;
  if (tile.is_spare(in.sentences)) {
    const std::int64_t row = real_rows(p.key_rows) + tile.first;
    if (!p.accumulate_k) {
      clear_rows(p.d_k + column, p.d_k_stride, in.width, row, row + 1, p.key_rows);
    }
    if (!p.accumulate_v) {
      clear_rows(p.d_v + column, p.d_v_stride, in.width, row, row + 1, p.key_rows);
    }
    return;
  }
  const SentenceSpan span(in, tile.sentence);
  const int key = tile.first, row = span.first_key + key;
  float *k = k_rows[warp], *v = v_rows[warp];
  load_row<ColumnsPerLane>(k, head_columns(in.k, in.k_stride, row, kv_head, in.width), in.width);
  load_row<ColumnsPerLane>(v, head_columns(in.v, in.v_stride, row, kv_head, in.width), in.width);
  // Queries before this one do not see the key.
  const int first_query = span.causal ? max(key - span.shift, 0) : 0;

  float d_k[ColumnsPerLane] = {}, d_v[ColumnsPerLane] = {};
  for (int head = kv_head * in.heads_per_kv_head; head < (kv_head + 1) * in.heads_per_kv_head;
       ++head) {
    const HeadBias bias(in.bias, head);
    const DropoutMask dropout_mask(in, tile.sentence, head);
    const N* q = head_columns(in.q, in.q_stride, span.first_query, head, in.width);
    const N* d_out = head_columns(p.d_out, p.d_out_stride, span.first_query, head, in.width);
    const std::int64_t first_row = head * p.rows.capacity + span.first_query;
    for (int query = first_query; query < span.queries; query += kWarp) {
      const int lane_query = query + lane;
      float weight = 0, d_score = 0;
      if (lane_query < span.queries) {
        float score = dot(k, q + lane_query * in.q_stride, in.width, in.aligned) * in.scale;
        if (bias.active) score += bias.at(key - (lane_query + span.shift));
        weight = expf(score - p.log_sum[first_row + lane_query]);
        float d_weight = dot(v, d_out + lane_query * p.d_out_stride, in.width, p.aligned);
        float factor = 1;
        if (in.dropout.active()) {
          factor =
              dropout_mask.mask8(lane_query, key & ~7) >> (key & 7) & 1 ? in.dropout.scale : 0.0f;
        }
        d_score = weight * (d_weight * factor - p.delta[first_row + lane_query]);
        weight *= factor;
      }
      const int count = min(kWarp, span.queries - query);
      add_weighted<ColumnsPerLane>(d_v, weight, d_out + query * p.d_out_stride, p.d_out_stride,
                                   count, in.width);
      add_weighted<ColumnsPerLane>(d_k, d_score, q + query * in.q_stride, in.q_stride, count,
                                   in.width);
    }
  }
  store_columns<ColumnsPerLane>(p.d_k + row * p.d_k_stride + column, d_k, in.scale, in.width,
                                p.accumulate_k);
  store_columns<ColumnsPerLane>(p.d_v + row * p.d_v_stride + column, d_v, 1.0f, in.width,
                                p.accumulate_v);
}

// One block per bucket and head adds the warps' partial sums in a fixed order.
__global__ void __launch_bounds__(kThreads)
    table_kernel(std::int64_t count, const float* partials, float* d_table) {
  const std::int64_t buckets = gridDim.x, heads = gridDim.y;
  const std::int64_t bucket = blockIdx.x, head = blockIdx.y;
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    sum += static_cast<double>(partials[(i * heads + head) * buckets + bucket]);
  }
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) d_table[bucket * heads + head] += static_cast<float>(sums[0]);
}

template <int ColumnsPerLane, class N>
void launch_fallback(CudaContext& ctx, const BackwardArguments<N>& p) {
  const AttentionArguments<N>& in = p.in;
  const std::size_t bytes_per_warp =
      p.table_partials != nullptr ? BucketGradients::bytes(in.bias.buckets) : 0;
  const int warps = table_warps(bytes_per_warp);
  // The first block also counts the tiles of keys.
  const dim3 query_grid(blocks_for(max_query_tiles(p.rows.capacity, in.sentences, 1), warps) + 1,
                        static_cast<unsigned>(in.heads));
  allow_shared_memory(queries_kernel<N, ColumnsPerLane>, static_cast<int>(warps * bytes_per_warp));
  queries_kernel<N, ColumnsPerLane>
      <<<query_grid, warps * kWarp, warps * bytes_per_warp, ctx.stream()>>>(p);
  check_launch("attention_backward, queries");
  const dim3 key_grid(blocks_for(max_key_tiles(p.key_rows.capacity, in.sentences, 1), kWarps),
                      static_cast<unsigned>(in.heads / in.heads_per_kv_head));
  keys_kernel<N, ColumnsPerLane><<<key_grid, kThreads, 0, ctx.stream()>>>(p);
  check_launch("attention_backward, keys");
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionBackward<T>& p) {
  using N = Native<T>;
  const AttentionInputs<T>& in = p.in;
  if (in.heads == 0 || p.rows.capacity + p.key_rows.capacity == 0) return;
  check_head_width(in.head_width);
  const BiasByDistance<T> bias(ctx, in.bias, in.heads);
  BackwardArguments<N> arguments{.in = attention_arguments(in, bias),
                                 .rows = p.rows,
                                 .key_rows = p.key_rows,
                                 .out = native(p.out),
                                 .d_out = native(p.d_out),
                                 .out_stride = p.out_stride,
                                 .d_out_stride = p.d_out_stride,
                                 .log_sum = p.log_sum,
                                 .d_q = native(p.d_q),
                                 .d_k = native(p.d_k),
                                 .d_v = native(p.d_v),
                                 .d_q_stride = p.d_q_stride,
                                 .d_k_stride = p.d_k_stride,
                                 .d_v_stride = p.d_v_stride,
                                 .accumulate_q = p.accumulate_q,
                                 .accumulate_k = p.accumulate_k,
                                 .accumulate_v = p.accumulate_v};
  arguments.aligned = arguments.in.aligned && rows_are_aligned(arguments.out, p.out_stride) &&
                      rows_are_aligned(arguments.d_out, p.d_out_stride) &&
                      rows_are_aligned(arguments.d_q, p.d_q_stride) &&
                      rows_are_aligned(arguments.d_k, p.d_k_stride) &&
                      rows_are_aligned(arguments.d_v, p.d_v_stride);
  const bool on_tensor_cores = uses_tensor_cores(arguments);
  const bool has_table_gradient =
      p.d_table != nullptr && in.bias.kind == ScoreBias<T>::Kind::buckets;
  arguments.skip_short_sentences =
      on_tensor_cores && has_short_kernel(in.head_width) && !has_table_gradient;
  if constexpr (sizeof(N) == 2) {
    if (arguments.skip_short_sentences) {
      const std::int64_t longest = std::max(in.max_queries, in.max_keys);
      launch_short_backward(ctx, arguments, longest);
      if (longest <= kMaxShort) return;
    }
  }
  arguments.max_queries = in.max_queries;
  arguments.max_keys = in.max_keys;
  arguments.query_tiles = tiles_per_warp(arguments.in.width, in.max_queries);
  arguments.key_tiles = tiles_per_warp(arguments.in.width, in.max_keys);
  const std::int64_t partial_count =
      !has_table_gradient ? 0
      : on_tensor_cores
          ? max_query_tiles(p.rows.capacity, in.sentences, block_rows(arguments.query_tiles)) *
                kGradientWarps
          : max_query_tiles(p.rows.capacity, in.sentences, 1);
  const ScratchMemory row_terms(
      ctx.arena(), static_cast<std::size_t>(in.heads * p.rows.capacity) *
                       (on_tensor_cores ? sizeof *arguments.row_terms : sizeof *arguments.delta));
  const ScratchMemory starts(ctx.arena(), static_cast<std::size_t>(in.sentences + 1) * sizeof(int));
  // The last block may have more warps than there are tiles left.
  const ScratchMemory table_partials(
      ctx.arena(), static_cast<std::size_t>((partial_count + kWarps) * in.heads * in.bias.buckets) *
                       sizeof(float));
  arguments.delta = row_terms.as<float>();
  arguments.row_terms = row_terms.as<float2>();
  arguments.key_starts = starts.as<int>();
  arguments.table_partials = has_table_gradient ? table_partials.as<float>() : nullptr;

  if constexpr (sizeof(N) == 2) {
    if (on_tensor_cores) {
      launch_mma_queries(ctx, arguments);
      launch_mma_keys(ctx, arguments);
    }
  }
  if (!on_tensor_cores)
    dispatch_columns_per_lane(in.head_width, [&]<int ColumnsPerLane>() {
      launch_fallback<ColumnsPerLane>(ctx, arguments);
    });
  if (!has_table_gradient) return;
  const dim3 grid(static_cast<unsigned>(in.bias.buckets), static_cast<unsigned>(in.heads));
  table_kernel<<<grid, kThreads, 0, ctx.stream()>>>(partial_count, arguments.table_partials,
                                                    p.d_table);
  check_launch("attention_backward, table");
}
template void compute<Cuda>(CudaContext&, const AttentionBackward<float>&);
template void compute<Cuda>(CudaContext&, const AttentionBackward<BFloat16>&);

}  // namespace nunchi::kernels
