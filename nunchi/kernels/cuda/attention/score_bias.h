// Score biases as the GPU's attention kernels evaluate them.
//
// T5's buckets are bounded by logarithms, which the device may round differently from the host. So
// the host computes the distance at which each bucket begins, and kernels compare integers. Clipped
// distances are buckets that begin at every distance.
#pragma once

#include <cstdint>

#include "nunchi/device/arena.h"
#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/limits.h"

namespace nunchi::kernels {

// Buckets of both directions together: 257 are enough for clipped distances from -128 to 128.
constexpr int kMaxBuckets = static_cast<int>(limits_of(Device::cuda).relative_buckets);

struct BucketBounds {
  int buckets = 0;       // per direction
  int after_offset = 0;  // offset of the buckets of keys after the query
  int reach = 1;         // no bucket begins at a larger distance
  bool bidirectional = false;
  std::int32_t first[kMaxBuckets] = {};  // the distance at which bucket i of a direction begins

  // The bucket of the relative position key - query, as kernels::relative_bucket or
  // kernels::clipped_bucket give it.
  __device__ int bucket_of(int relative) const {
    const int begin = bidirectional && relative > 0 ? after_offset : 0;
    const int distance = bidirectional ? abs(relative) : max(-relative, 0);
    int low = 0, high = buckets;  // first[low] <= distance < first[high]
    while (high - low > 1) {
      const int center = (low + high) / 2;
      if (first[center] <= distance) {
        low = center;
      } else {
        high = center;
      }
    }
    return begin + low;
  }
};

// Throws Error if there are more than kMaxBuckets.
template <class T>
const BucketBounds& bucket_bounds(CudaContext& ctx, const ScoreBias<T>& bias);

// The bias of every distance as a table, for kernels over many (query, key) pairs.
struct BiasTerms {
  const float* slopes = nullptr;       // [H]
  const float* by_distance = nullptr;  // [H, 2 reach + 1] for key - query from -reach to reach
  const int* bucket = nullptr;         // [2 reach + 1] bucket of key - query
  int reach = 0;
  int buckets = 0;  // of both directions together
};

// The bias of one head.
struct HeadBias {
  const float* center = nullptr;  // entry of distance 0 in the head's by_distance
  float slope = 0;
  int reach = 0;
  bool active = false;

  __device__ HeadBias(const BiasTerms& terms, int head) : reach(terms.reach) {
    active = terms.slopes != nullptr || terms.by_distance != nullptr;
    if (terms.by_distance != nullptr) center = terms.by_distance + head * (2 * reach + 1) + reach;
    if (terms.slopes != nullptr) slope = terms.slopes[head];
  }
  __device__ float at(int relative) const {
    if (center != nullptr) return center[min(max(relative, -reach), reach)];
    return -slope * static_cast<float>(abs(relative));
  }
};

// Owns the memory of BiasTerms; must live until the kernels that use it are launched.
template <class T>
class BiasByDistance {
 public:
  BiasByDistance(CudaContext& ctx, const ScoreBias<T>& bias, int heads);
  const BiasTerms& terms() const { return terms_; }

 private:
  static std::size_t bytes(CudaContext& ctx, const ScoreBias<T>& bias, int heads);

  ScratchMemory memory_;
  BiasTerms terms_;
};

}  // namespace nunchi::kernels
