#include "nunchi/kernels/cuda/score_bias.h"

#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "nunchi/base/error.h"

namespace nunchi::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Bounds take some hundred logarithms: found once for each kind of bucket.
struct KnownBounds {
  std::map<std::tuple<int, int, bool>, BucketBounds> bounds;
};

BucketBounds find_bounds(int buckets, int max_distance, bool bidirectional) {
  BucketBounds found{.buckets = bidirectional ? buckets / 2 : buckets,
                     .bidirectional = bidirectional};
  int bucket = 0;
  // Distances from max_distance on share the last bucket.
  for (int distance = 1; distance <= std::max(max_distance, buckets); ++distance) {
    const int now = relative_bucket(-distance, buckets, max_distance, bidirectional);
    while (bucket < now) found.first[++bucket] = distance;
  }
  found.reach = std::max(1, found.first[bucket]);
  while (bucket + 1 < found.buckets) {
    found.first[++bucket] = std::numeric_limits<std::int32_t>::max();
  }
  return found;
}

template <class N>
__global__ void bias_line_kernel(BucketBounds bounds, const N* table, int heads, float* line,
                                 int* bucket) {
  const int length = 2 * bounds.reach + 1;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= heads * length) return;
  const int head = i / length, at = i % length;
  const int found = bounds.bucket_of(at - bounds.reach);
  line[i] = to_float(table[found * heads + head]);
  if (head == 0) bucket[at] = found;
}

}  // namespace

const BucketBounds& bucket_bounds(CudaContext& ctx, int buckets, int max_distance,
                                  bool bidirectional) {
  if (buckets > kMostBuckets) {
    throw Error("attention on the GPU knows at most " + std::to_string(kMostBuckets) +
                " buckets of relative positions, not " + std::to_string(buckets) + ".");
  }
  auto& known = ctx.cache<KnownBounds>().bounds;
  const std::tuple key(buckets, max_distance, bidirectional);
  auto place = known.find(key);
  if (place == known.end()) {
    place = known.emplace(key, find_bounds(buckets, max_distance, bidirectional)).first;
  }
  return place->second;
}

template <class T>
std::size_t BiasLine<T>::bytes(CudaContext& ctx, const ScoreBias<T>& bias, int heads) {
  if (bias.kind != ScoreBias<T>::Kind::buckets) return 0;
  const BucketBounds& bounds =
      bucket_bounds(ctx, bias.buckets, bias.max_distance, bias.bidirectional);
  return static_cast<std::size_t>(2 * bounds.reach + 1) * static_cast<std::size_t>(heads + 1) * 4;
}

template <class T>
BiasLine<T>::BiasLine(CudaContext& ctx, const ScoreBias<T>& bias, int heads)
    : memory_(ctx.arena(), bytes(ctx, bias, heads)) {
  if (bias.kind == ScoreBias<T>::Kind::slopes) terms_.slopes = native(bias.slopes);
  if (bias.kind != ScoreBias<T>::Kind::buckets) return;
  const BucketBounds& bounds =
      bucket_bounds(ctx, bias.buckets, bias.max_distance, bias.bidirectional);
  const int length = 2 * bounds.reach + 1;
  float* line = memory_.as<float>();
  int* bucket = reinterpret_cast<int*>(line + heads * length);
  bias_line_kernel<<<blocks_for(heads * length, kThreads), kThreads, 0, ctx.stream()>>>(
      bounds, native(bias.table), heads, line, bucket);
  check_launch("bias_line");
  terms_.line = line;
  terms_.bucket = bucket;
  terms_.reach = bounds.reach;
  terms_.buckets = bias.buckets;
}

template class BiasLine<float>;
template class BiasLine<BFloat16>;

}  // namespace nunchi::kernels::cuda
