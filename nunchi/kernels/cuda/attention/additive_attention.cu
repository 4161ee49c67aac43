// A warp scores the keys of one query; its lanes split the columns. Sums over keys and over queries
// are computed per column in a fixed order, so that bits do not depend on the schedule.
#include "nunchi/kernels/additive_attention.h"

#include <limits>

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;

// One sentence's queries and keys.
struct Sentence {
  std::int64_t first_query, first_key;
  std::int64_t weights;  // offset of its weights
  int queries, keys;

  template <class N>
  __device__ Sentence(const AdditiveInputs<N>& in, int b)
      : first_query(in.q_offsets != nullptr ? in.q_offsets[b] : b),
        first_key(in.k_begin[b]),
        weights(in.weight_offsets != nullptr ? in.weight_offsets[b] : b * in.max_keys),
        queries(in.q_offsets != nullptr ? in.q_offsets[b + 1] - in.q_offsets[b] : 1),
        keys(in.k_length[b]) {}
};

// The grid is sentences × groups of queries, with one warp per query.
struct WarpQuery {
  int sentence = blockIdx.x;
  int query = static_cast<int>(blockIdx.y * kWarps + threadIdx.x / kWarp);
  int lane = lane_of_thread();
};

template <class N>
__global__ void weights_kernel(const AdditiveInputs<N> in, float* all_weights) {
  const WarpQuery warp;
  const Sentence s(in, warp.sentence);
  if (warp.query >= s.queries) return;
  const int width = static_cast<int>(in.width);
  const N* q = in.q + (s.first_query + warp.query) * in.q_stride;
  float* weights = all_weights + s.weights + std::int64_t{warp.query} * s.keys;
  float max_score = -std::numeric_limits<float>::infinity();
  for (int j = 0; j < s.keys; ++j) {
    const N* k = in.k + (s.first_key + j) * in.k_stride;
    float score = 0;
    for (int a = warp.lane; a < width; a += kWarp) {
      score += to_float(in.score_vector[a]) * tanhf(to_float(q[a]) + to_float(k[a]));
    }
    score = warp_sum(score);
    max_score = fmaxf(max_score, score);
    // Only lane j % 32 reads this element again below.
    if (j % kWarp == warp.lane) weights[j] = score;
  }
  float total = 0;
  for (int j = warp.lane; j < s.keys; j += kWarp) {
    const float weight = expf(weights[j] - max_score);
    weights[j] = weight;
    total += weight;
  }
  total = warp_sum(total);
  for (int j = warp.lane; j < s.keys; j += kWarp) weights[j] /= total;
}

// out = weights · v, one block per query.
template <class N>
__global__ void values_kernel(const AdditiveInputs<N> in, const float* all_weights, N* out,
                              std::int64_t out_stride) {
  const Sentence s(in, blockIdx.x);
  const int query = blockIdx.y;
  if (query >= s.queries) return;
  const float* weights = all_weights + s.weights + std::int64_t{query} * s.keys;
  const N* v = in.v + s.first_key * in.v_stride;
  for (int c = threadIdx.x; c < in.value_width; c += kThreads) {
    float sum = 0;
    for (int j = 0; j < s.keys; ++j) sum += weights[j] * to_float(v[j * in.v_stride + c]);
    out[(s.first_query + query) * out_stride + c] = from_float<N>(sum);
  }
}

template <class N>
__global__ void clear_kernel(Rows rows, int width, N* out, std::int64_t stride) {
  const std::int64_t row = blockIdx.x;
  if (row < real_rows(rows)) return;
  for (int c = threadIdx.x; c < width; c += kThreads) {
    out[row * stride + c] = from_float<N>(0.0f);
  }
}

template <class N>
void clear_tail(CudaContext& ctx, const Rows& rows, std::int64_t width, N* out,
                std::int64_t stride) {
  if (rows.capacity == 0) return;
  clear_kernel<<<static_cast<unsigned>(rows.capacity), kThreads, 0, ctx.stream()>>>(
      rows, static_cast<int>(width), out, stride);
}

dim3 warp_grid(std::int64_t sentences, std::int64_t queries) {
  return {static_cast<unsigned>(sentences), blocks_for(queries, kWarps)};
}
dim3 block_grid(std::int64_t sentences, std::int64_t rows) {
  return {static_cast<unsigned>(sentences), static_cast<unsigned>(rows)};
}

// Scratch memory of the backward pass.
struct Workspace {
  float* d_scores;        // laid out like the weights
  float* d_score_vector;  // [S, A] per key, summed over the keys afterwards
};

template <class N>
__device__ void store_or_add(N* to, float value, bool accumulate) {
  *to = from_float<N>(accumulate ? to_float(*to) + value : value);
}

// d_score = weight (d_weight - Σ weight d_weight), one warp per query.
template <class N>
__global__ void scores_backward_kernel(const AdditiveAttentionBackward<N> p,
                                       const Workspace workspace) {
  const WarpQuery warp;
  const Sentence s(p.in, warp.sentence);
  if (warp.query >= s.queries) return;
  const std::int64_t first = s.weights + std::int64_t{warp.query} * s.keys;
  const N* d_out = p.d_out + (s.first_query + warp.query) * p.d_out_stride;
  float mean = 0;
  for (int j = 0; j < s.keys; ++j) {
    const N* v = p.in.v + (s.first_key + j) * p.in.v_stride;
    float d_weight = 0;
    for (int c = warp.lane; c < p.in.value_width; c += kWarp) {
      d_weight += to_float(d_out[c]) * to_float(v[c]);
    }
    d_weight = warp_sum(d_weight);
    mean += p.weights[first + j] * d_weight;
    if (j % kWarp == warp.lane) workspace.d_scores[first + j] = d_weight;
  }
  for (int j = warp.lane; j < s.keys; j += kWarp) {
    workspace.d_scores[first + j] = p.weights[first + j] * (workspace.d_scores[first + j] - mean);
  }
}

// The gradient of a query, one block per query.
template <class N>
__global__ void queries_backward_kernel(const AdditiveAttentionBackward<N> p,
                                        const Workspace workspace) {
  const Sentence s(p.in, blockIdx.x);
  const int query = blockIdx.y;
  if (query >= s.queries) return;
  const float* d_scores = workspace.d_scores + s.weights + std::int64_t{query} * s.keys;
  const std::int64_t row = s.first_query + query;
  for (int a = threadIdx.x; a < p.in.width; a += kThreads) {
    const float q = to_float(p.in.q[row * p.in.q_stride + a]),
                score_vector = to_float(p.in.score_vector[a]);
    float sum = 0;
    for (int j = 0; j < s.keys; ++j) {
      const float t = tanhf(q + to_float(p.in.k[(s.first_key + j) * p.in.k_stride + a]));
      sum += d_scores[j] * score_vector * (1 - t * t);
    }
    store_or_add(p.d_q + row * p.d_q_stride + a, sum, p.accumulate_q);
  }
}

// The gradients of a key and its value, and the key's contribution to the score_vector's; one block
// per key.
template <class N>
__global__ void keys_backward_kernel(const AdditiveAttentionBackward<N> p,
                                     const Workspace workspace) {
  const Sentence s(p.in, blockIdx.x);
  const int key = blockIdx.y;
  if (key >= s.keys) return;
  const std::int64_t row = s.first_key + key, first = s.weights + key;
  for (int a = threadIdx.x; a < p.in.width; a += kThreads) {
    const float k = to_float(p.in.k[row * p.in.k_stride + a]),
                score_vector = to_float(p.in.score_vector[a]);
    float sum = 0, d_score_vector = 0;
    for (int i = 0; i < s.queries; ++i) {
      const float d = workspace.d_scores[first + std::int64_t{i} * s.keys];
      const float t = tanhf(to_float(p.in.q[(s.first_query + i) * p.in.q_stride + a]) + k);
      sum += d * score_vector * (1 - t * t);
      d_score_vector += d * t;
    }
    store_or_add(p.d_k + row * p.d_k_stride + a, sum, p.accumulate_k);
    workspace.d_score_vector[row * p.in.width + a] = d_score_vector;
  }
  for (int c = threadIdx.x; c < p.in.value_width; c += kThreads) {
    float sum = 0;
    for (int i = 0; i < s.queries; ++i) {
      sum += p.weights[first + std::int64_t{i} * s.keys] *
             to_float(p.d_out[(s.first_query + i) * p.d_out_stride + c]);
    }
    store_or_add(p.d_v + row * p.d_v_stride + c, sum, p.accumulate_v);
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AdditiveAttention<T>& p) {
  const AdditiveInputs<T>& in = p.in;
  const ScratchMemory scratch(
      ctx.arena(),
      p.weights == nullptr ? static_cast<std::size_t>(in.query_key_pairs) * sizeof(float) : 0);
  float* weights = p.weights != nullptr ? p.weights : scratch.as<float>();
  if (in.sentences > 0 && in.max_queries > 0) {
    const AdditiveInputs<Native<T>> inputs = native(in);
    weights_kernel<<<warp_grid(in.sentences, in.max_queries), kThreads, 0, ctx.stream()>>>(inputs,
                                                                                           weights);
    values_kernel<<<block_grid(in.sentences, in.max_queries), kThreads, 0, ctx.stream()>>>(
        inputs, weights, native(p.out), p.out_stride);
  }
  clear_tail(ctx, p.rows, in.value_width, native(p.out), p.out_stride);
  check_launch(p.name());
}
template void compute<Cuda>(CudaContext&, const AdditiveAttention<float>&);
template void compute<Cuda>(CudaContext&, const AdditiveAttention<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AdditiveAttentionBackward<T>& p) {
  using N = Native<T>;
  const AdditiveInputs<T>& in = p.in;
  const ScratchMemory d_scores(ctx.arena(),
                               static_cast<std::size_t>(in.query_key_pairs) * sizeof(float));
  const ScratchMemory d_score_vector(
      ctx.arena(), static_cast<std::size_t>(p.key_rows.capacity * in.width) * sizeof(float));
  const AdditiveAttentionBackward<N> arguments = native(p);
  const Workspace workspace{.d_scores = d_scores.as<float>(),
                            .d_score_vector = d_score_vector.as<float>()};
  if (in.sentences > 0 && in.max_queries > 0) {
    scores_backward_kernel<<<warp_grid(in.sentences, in.max_queries), kThreads, 0, ctx.stream()>>>(
        arguments, workspace);
    queries_backward_kernel<<<block_grid(in.sentences, in.max_queries), kThreads, 0,
                              ctx.stream()>>>(arguments, workspace);
  }
  if (in.sentences > 0 && in.max_keys > 0) {
    keys_backward_kernel<<<block_grid(in.sentences, in.max_keys), kThreads, 0, ctx.stream()>>>(
        arguments, workspace);
  }
  clear_tail(ctx, p.key_rows, in.width, workspace.d_score_vector, in.width);
  if (!p.accumulate_q) clear_tail(ctx, p.rows, in.width, arguments.d_q, p.d_q_stride);
  if (!p.accumulate_k) clear_tail(ctx, p.key_rows, in.width, arguments.d_k, p.d_k_stride);
  if (!p.accumulate_v) clear_tail(ctx, p.key_rows, in.value_width, arguments.d_v, p.d_v_stride);
  check_launch(p.name());
  run_unprofiled(ctx, ColumnSum<float>{.rows = p.key_rows.capacity,
                                       .width = in.width,
                                       .x = workspace.d_score_vector,
                                       .out = p.d_score_vector});
}
template void compute<Cuda>(CudaContext&, const AdditiveAttentionBackward<float>&);
template void compute<Cuda>(CudaContext&, const AdditiveAttentionBackward<BFloat16>&);

}  // namespace nunchi::kernels
