// One block per row: the log-sum of each model, then the mean of each token.
#include "nunchi/kernels/mean_probabilities.h"

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/cuda/search/logit_keys.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / kWarp;

// The sum or the maximum of all threads, the same in all of them. Called by a whole block.
template <class WarpTotal, class Join>
__device__ float block_total(float own, float* of_warps, WarpTotal warp_total, Join join) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const float total = warp_total(own);
  __syncthreads();  // earlier readers of of_warps are done
  if (lane_of_thread() == 0) of_warps[warp] = total;
  __syncthreads();
  float all = of_warps[0];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) all = join(all, of_warps[w]);
  return all;
}

__global__ __launch_bounds__(kThreads) void mean_probabilities_kernel(
    const MeanProbabilities<float> p) {
  __shared__ float of_warps[kWarps];
  wait_for_previous_kernel();
  const std::int64_t first = std::int64_t{blockIdx.x} * p.vocabulary;
  const auto thread = static_cast<std::int64_t>(threadIdx.x);
  float log_sums[MeanProbabilities<float>::kMaxMembers];
#pragma unroll
  for (int m = 0; m < MeanProbabilities<float>::kMaxMembers; ++m) {
    if (m >= p.members) break;
    const float* x = p.logits[m] + first;
    float own_max = -INFINITY;
    for (std::int64_t i = thread; i < p.vocabulary; i += kThreads) own_max = fmaxf(own_max, x[i]);
    const float max_logit = block_total(
        own_max, of_warps, [](float v) { return warp_max(v); },
        [](float a, float b) { return fmaxf(a, b); });
    const float shift = shift_of(max_logit);
    float own_sum = 0;
    for (std::int64_t i = thread; i < p.vocabulary; i += kThreads) own_sum += expf(x[i] - shift);
    const float sum = block_total(
        own_sum, of_warps, [](float v) { return warp_sum(v); },
        [](float a, float b) { return a + b; });
    log_sums[m] = static_cast<float>(log_sum(max_logit, sum, nullptr));
  }
  const float log_members = logf(static_cast<float>(p.members));
  for (std::int64_t i = thread; i < p.vocabulary; i += kThreads) {
    // Not -inf, so that tokens that no model allows get -inf instead of NaN.
    float highest = -3.402823466e38f;
    float sum = 0;
#pragma unroll
    for (int m = 0; m < MeanProbabilities<float>::kMaxMembers; ++m) {
      if (m < p.members) highest = fmaxf(highest, p.logits[m][first + i] - log_sums[m]);
    }
#pragma unroll
    for (int m = 0; m < MeanProbabilities<float>::kMaxMembers; ++m) {
      if (m < p.members) sum += expf((p.logits[m][first + i] - log_sums[m]) - highest);
    }
    p.out[first + i] = sum == 0 ? -INFINITY : highest + (logf(sum) - log_members);
  }
}

}  // namespace

template <>
void compute<Cuda>(CudaContext& ctx, const MeanProbabilities<float>& p) {
  if (p.rows == 0) return;
  launch_overlapped(ctx, p.name(), mean_probabilities_kernel,
                    {static_cast<unsigned>(p.rows), kThreads}, p);
}

}  // namespace nunchi::kernels
