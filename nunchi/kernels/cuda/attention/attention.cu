// The fallback kernel of attention, without tensor cores, in f32 arithmetic: one warp per query.
// Aligned bf16 heads of 32, 64 or 128 columns use the tensor cores instead (attention_mma.cu;
// attention_short.cu for short sentences).
#include "nunchi/kernels/attention.h"

#include <cmath>
#include <limits>

#include "nunchi/kernels/cuda/attention/attention_common.h"
#include "nunchi/kernels/cuda/attention/attention_rows.h"
#include "nunchi/kernels/cuda/attention/attention_short.h"
#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// A lane scores one key at a time. When values are summed, it holds columns lane, lane + 32, …, at
// most ColumnsPerLane of them.
template <class N, int ColumnsPerLane>
__global__ void __launch_bounds__(kThreads) fallback_kernel(ForwardArguments<N> p) {
  const AttentionArguments<N>& in = p.in;
  const int lane = lane_of_thread(), head = blockIdx.y;
  const int tile_index = blockIdx.x * kWarps + threadIdx.x / kWarp;
  __shared__ __align__(16) float q_rows[kWarps][32 * ColumnsPerLane];
  float* q = q_rows[threadIdx.x / kWarp];
  const Tile tile = query_tile<1>(in.q_offsets, in.sentences, tile_index);
  if (tile.is_spare(in.sentences)) {
    const int row = in.q_offsets[in.sentences] + tile.first;
    return clear_rows(p.out + head * in.width, p.out_stride, in.width, row, row + 1, p.rows);
  }
  const SentenceSpan span(in, tile.sentence);
  const int query = tile.first;
  if (query >= span.queries) return;
  const std::int64_t row = span.first_query + query;
  load_row<ColumnsPerLane>(
      q, head_columns(in.q, in.q_stride, span.first_query + query, head, in.width), in.width);
  const N* k =
      head_columns(in.k, in.k_stride, span.first_key, head / in.heads_per_kv_head, in.width);
  const N* v =
      head_columns(in.v, in.v_stride, span.first_key, head / in.heads_per_kv_head, in.width);
  const HeadBias bias(in.bias, head);
  const DropoutMask dropout_mask(in, tile.sentence, head);

  float weighted_values[ColumnsPerLane] = {}, running_max = kLowest, weight_sum = 0;
  const int keys = span.visible_keys(query);
  for (int key = 0; key < keys; key += kWarp) {
    const int lane_key = key + lane;
    float score = kLowest;
    if (lane_key < keys) {
      score = dot(q, k + lane_key * in.k_stride, in.width, in.aligned) * in.scale;
      if (bias.active) score += bias.at(lane_key - (query + span.shift));
    }
    // fmaxf ignores NaN, so new_max stays -inf if all scores are NaN. A base of 0 then avoids
    // -inf - -inf.
    const float new_max = fmaxf(running_max, warp_max(score)),
                base = new_max == kLowest ? 0.0f : new_max;
    const float rescale = expf(running_max - base);
    float weight = expf(score - base);
    running_max = new_max;
    weight_sum = weight_sum * rescale + warp_sum(weight);
    if (in.dropout.active()) {
      const bool kept = dropout_mask.mask8(query, lane_key & ~7) >> (lane_key & 7) & 1;
      weight = kept ? weight * in.dropout.scale : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < ColumnsPerLane; ++i) weighted_values[i] *= rescale;
    add_weighted<ColumnsPerLane>(weighted_values, weight, v + key * in.v_stride, in.v_stride,
                                 min(kWarp, keys - key), in.width);
  }
  const float inverse = weight_sum > 0 ? 1 / weight_sum : 0.0f;
  store_columns<ColumnsPerLane>(p.out + row * p.out_stride + std::int64_t{head} * in.width,
                                weighted_values, inverse, in.width, /*accumulate=*/false);
  if (p.log_sum != nullptr && lane == 0) {
    p.log_sum[head * p.rows.capacity + row] =
        weight_sum > 0 ? running_max + logf(weight_sum) : 0.0f;
  }
}

template <int ColumnsPerLane, class N>
void launch_fallback(CudaContext& ctx, const ForwardArguments<N>& p) {
  const std::int64_t tile_count = max_query_tiles(p.rows.capacity, p.in.sentences, 1);
  const dim3 grid(blocks_for(tile_count, kWarps), static_cast<unsigned>(p.in.heads));
  fallback_kernel<N, ColumnsPerLane><<<grid, kThreads, 0, ctx.stream()>>>(p);
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Attention<T>& p) {
  using N = Native<T>;
  if (p.rows.capacity == 0 || p.in.heads == 0) return;
  check_head_width(p.in.head_width);
  const BiasByDistance<T> bias(ctx, p.in.bias, p.in.heads);
  ForwardArguments<N> arguments{.in = attention_arguments(p.in, bias),
                                .rows = p.rows,
                                .out = native(p.out),
                                .out_stride = p.out_stride,
                                .log_sum = p.log_sum};
  if constexpr (sizeof(N) == 2) {
    const std::int64_t width = p.in.head_width;
    if (arguments.in.aligned && rows_are_aligned(arguments.out, arguments.out_stride) &&
        (has_short_kernel(width) || width == 128)) {
      arguments.skip_short_sentences = has_short_kernel(width);
      const std::int64_t longest = std::max(p.in.max_queries, p.in.max_keys);
      if (arguments.skip_short_sentences) launch_short_forward(ctx, arguments, longest);
      if (!arguments.skip_short_sentences || longest > kMaxShort)
        launch_mma_forward(ctx, arguments, p.in.max_queries);
      return;
    }
  }
  dispatch_columns_per_lane(p.in.head_width, [&]<int ColumnsPerLane>() {
    launch_fallback<ColumnsPerLane>(ctx, arguments);
  });
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const Attention<float>&);
template void compute<Cuda>(CudaContext&, const Attention<BFloat16>&);

}  // namespace nunchi::kernels
