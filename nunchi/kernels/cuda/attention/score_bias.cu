#include "nunchi/kernels/cuda/attention/score_bias.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "nunchi/base/error.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;

// Caches bounds by the bias's bucket options: computing them takes some hundred logarithms.
struct BoundsCache {
  std::map<std::tuple<int, int, bool, bool>, BucketBounds> bounds;
};

template <class T>
BucketBounds find_bounds(const ScoreBias<T>& bias) {
  BucketBounds bounds{.buckets = bias.clipped         ? bias.max_distance + 1
                                 : bias.bidirectional ? bias.buckets / 2
                                                      : bias.buckets,
                      .bidirectional = bias.bidirectional};
  bounds.after_offset = bias.clipped ? bias.max_distance : bounds.buckets;
  if (bias.clipped) {
    std::iota(bounds.first, bounds.first + bounds.buckets, 0);
    bounds.reach = std::max(1, bias.max_distance);
  } else {
    const std::vector<std::int32_t> starts =
        bucket_starts(bias.buckets, bias.max_distance, bias.bidirectional);
    std::ranges::copy(starts, bounds.first);
    // Buckets that no distance falls into begin beyond all distances.
    for (const std::int32_t start : starts) {
      if (start <= std::max(bias.max_distance, bias.buckets)) bounds.reach = std::max(1, start);
    }
  }
  return bounds;
}

template <class N>
__global__ void bias_by_distance_kernel(BucketBounds bounds, const N* table, int heads,
                                        float* by_distance, int* bucket) {
  const int length = 2 * bounds.reach + 1;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= heads * length) return;
  const int head = i / length, index = i % length;
  const int found_bucket = bounds.bucket_of(index - bounds.reach);
  by_distance[i] = to_float(table[found_bucket * heads + head]);
  if (head == 0) bucket[index] = found_bucket;
}

}  // namespace

template <class T>
const BucketBounds& bucket_bounds(CudaContext& ctx, const ScoreBias<T>& bias) {
  if (bias.buckets > kMaxBuckets) {
    throw Error("attention on the GPU supports at most " + std::to_string(kMaxBuckets) +
                " buckets of relative positions, not " + std::to_string(bias.buckets) + ".");
  }
  auto& known = ctx.cache<BoundsCache>().bounds;
  const std::tuple key(bias.buckets, bias.max_distance, bias.bidirectional, bias.clipped);
  auto found = known.find(key);
  if (found == known.end()) {
    found = known.emplace(key, find_bounds(bias)).first;
  }
  return found->second;
}
template const BucketBounds& bucket_bounds(CudaContext& ctx, const ScoreBias<float>& bias);
template const BucketBounds& bucket_bounds(CudaContext& ctx, const ScoreBias<BFloat16>& bias);

template <class T>
std::size_t BiasByDistance<T>::bytes(CudaContext& ctx, const ScoreBias<T>& bias, int heads) {
  if (bias.kind != ScoreBias<T>::Kind::buckets) return 0;
  const BucketBounds& bounds = bucket_bounds(ctx, bias);
  return static_cast<std::size_t>(2 * bounds.reach + 1) * static_cast<std::size_t>(heads + 1) * 4;
}

template <class T>
BiasByDistance<T>::BiasByDistance(CudaContext& ctx, const ScoreBias<T>& bias, int heads)
    : memory_(ctx.arena(), bytes(ctx, bias, heads)) {
  if (bias.kind == ScoreBias<T>::Kind::slopes) terms_.slopes = bias.slopes;
  if (bias.kind != ScoreBias<T>::Kind::buckets) return;
  const BucketBounds& bounds = bucket_bounds(ctx, bias);
  const int length = 2 * bounds.reach + 1;
  float* by_distance = memory_.as<float>();
  int* bucket = reinterpret_cast<int*>(by_distance + heads * length);
  bias_by_distance_kernel<<<blocks_for(heads * length, kThreads), kThreads, 0, ctx.stream()>>>(
      bounds, native(bias.table), heads, by_distance, bucket);
  check_launch("bias_by_distance");
  terms_.by_distance = by_distance;
  terms_.bucket = bucket;
  terms_.reach = bounds.reach;
  terms_.buckets = bias.buckets;
}

template class BiasByDistance<float>;
template class BiasByDistance<BFloat16>;

}  // namespace nunchi::kernels
