// Score biases as the GPU's attention kernels evaluate them.
//
// T5's buckets are bounded by logarithms, which the device may round otherwise than the host. So
// the host finds the distance at which each bucket begins, and kernels compare whole numbers.
// Clipped distances are buckets that begin at every distance.
#pragma once

#include <cstdint>

#include "nunchi/device/arena.h"
#include "nunchi/kernels/attention.h"
#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/limits.h"

namespace nunchi::kernels {

// Of both directions together: with 257 a distance of 128 either way, and none.
constexpr int kMostBuckets = static_cast<int>(limits_of(Device::cuda).relative_buckets);

struct BucketBounds {
  int buckets = 0;  // of one direction
  int after = 0;    // what keys after the query add, if they have buckets of their own
  int reach = 1;    // the last bucket begins here at the latest
  bool bidirectional = false;
  std::int32_t first[kMostBuckets] = {};  // the distance at which bucket i of a direction begins

  // The bucket of the relative position key - query; as kernels::relative_bucket or
  // kernels::clipped_bucket.
  __device__ int bucket_of(int relative) const {
    const int begin = bidirectional && relative > 0 ? after : 0;
    const int distance = bidirectional ? abs(relative) : max(-relative, 0);
    int low = 0, high = buckets;  // first[low] <= distance, first[high] (if any) is not
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first[middle] <= distance) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return begin + low;
  }
};

// Throws Error where there are more than kMostBuckets.
template <class T>
const BucketBounds& bucket_bounds(CudaContext& ctx, const ScoreBias<T>& bias);

// What a kernel over many (query, key) pairs gets: the bias of every distance, looked up.
struct BiasTerms {
  const float* slopes = nullptr;  // [H]
  const float* line = nullptr;    // [H, 2 reach + 1] for key - query from -reach to reach
  const int* bucket = nullptr;    // [2 reach + 1]
  int reach = 0;
  int buckets = 0;  // of both directions
};

// The bias of one head.
struct HeadBias {
  const float* middle = nullptr;  // of the line
  float slope = 0;
  int reach = 0;
  bool active = false;

  __device__ HeadBias(const BiasTerms& terms, int head) : reach(terms.reach) {
    active = terms.slopes != nullptr || terms.line != nullptr;
    if (terms.line != nullptr) middle = terms.line + head * (2 * reach + 1) + reach;
    if (terms.slopes != nullptr) slope = terms.slopes[head];
  }
  __device__ float at(int relative) const {
    if (middle != nullptr) return middle[min(max(relative, -reach), reach)];
    return -slope * static_cast<float>(abs(relative));
  }
};

// The memory behind BiasTerms for as long as a launch is being made.
template <class T>
class BiasLine {
 public:
  BiasLine(CudaContext& ctx, const ScoreBias<T>& bias, int heads);
  const BiasTerms& terms() const { return terms_; }

 private:
  static std::size_t bytes(CudaContext& ctx, const ScoreBias<T>& bias, int heads);

  ScratchMemory memory_;
  BiasTerms terms_;
};

}  // namespace nunchi::kernels
