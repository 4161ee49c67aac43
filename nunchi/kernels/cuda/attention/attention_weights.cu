// Attention weights for a trace: one warp per query and head, three passes over its scores.
#include <limits>

#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cuda/attention/attention_common.h"
#include "nunchi/kernels/cuda/attention/attention_rows.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

template <class N>
__global__ void __launch_bounds__(kWarps* kWarp)
    weights_kernel(AttentionArguments<N> in, const std::int64_t* begin, float* weights) {
  __shared__ __align__(16) float q_rows[kWarps][kMaxHeadWidth];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, head = blockIdx.y;
  const Tile tile =
      query_tile<1>(in.q_offsets, in.sentences, static_cast<int>(blockIdx.x * kWarps) + warp);
  if (tile.is_spare(in.sentences)) return;
  const SentenceSpan span(in, tile.sentence);
  const int query = tile.first;
  if (query >= span.queries) return;
  float* q = q_rows[warp];
  load_row<kMaxHeadWidth / kWarp>(
      q, head_columns(in.q, in.q_stride, span.first_query + query, head, in.width), in.width);
  const N* k =
      head_columns(in.k, in.k_stride, span.first_key, head / in.heads_per_kv_head, in.width);
  const HeadBias bias(in.bias, head);
  float* out =
      weights + begin[tile.sentence] + (std::int64_t{head} * span.queries + query) * span.keys;
  const int visible = span.visible_keys(query);
  float max_score = kLowest, total = 0;
  for (int key = lane; key < visible; key += kWarp) {
    float score = dot(q, k + key * in.k_stride, in.width, in.aligned) * in.scale;
    if (bias.active) score += bias.at(key - (query + span.shift));
    out[key] = score;
    max_score = fmaxf(max_score, score);
  }
  max_score = warp_max(max_score);
  for (int key = lane; key < visible; key += kWarp) total += out[key] = expf(out[key] - max_score);
  const float inverse = 1 / warp_sum(total);
  for (int key = lane; key < span.keys; key += kWarp) {
    out[key] = key < visible ? out[key] * inverse : 0.0f;
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AttentionWeights<T>& p) {
  const AttentionInputs<T>& in = p.in;
  if (in.sentences == 0 || in.heads == 0 || in.max_queries == 0) return;
  check_head_width(in.head_width);
  const BiasByDistance<T> bias(ctx, in.bias, in.heads);
  // The host does not know the number of rows, only its upper bound.
  const std::int64_t tile_count = max_query_tiles(in.sentences * in.max_queries, in.sentences, 1);
  const dim3 grid(blocks_for(tile_count, kWarps), static_cast<unsigned>(in.heads));
  weights_kernel<<<grid, kWarps * kWarp, 0, ctx.stream()>>>(attention_arguments(in, bias), p.begin,
                                                            p.weights);
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const AttentionWeights<float>&);
template void compute<Cuda>(CudaContext&, const AttentionWeights<BFloat16>&);

}  // namespace nunchi::kernels
