// Sorts numbers across adjacent lanes, in registers.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {

// Sorts the numbers of `Lanes` adjacent lanes, `Each` numbers in a lane, the highest first, lane
// after lane. Both are powers of two, and all lanes of the warp take part. A bitonic network.
template <int Lanes, int Each>
__device__ void sort_descending(float (&x)[Each]) {
  const int first = static_cast<int>(threadIdx.x) % Lanes * Each;
#pragma unroll
  for (int size = 2; size <= Lanes * Each; size *= 2) {
#pragma unroll
    for (int step = size / 2; step > 0; step /= 2) {
      float other[Each];
#pragma unroll
      for (int e = 0; e < Each; ++e) {
        other[e] = step < Each ? x[e ^ step] : __shfl_xor_sync(kAllLanes, x[e], step / Each);
      }
#pragma unroll
      for (int e = 0; e < Each; ++e) {
        const bool is_first_of_pair = ((step < Each ? e : first) & step) == 0,
                   descending = ((size < Each ? e : first) & size) == 0;
        x[e] = is_first_of_pair == descending ? fmaxf(x[e], other[e]) : fminf(x[e], other[e]);
      }
    }
  }
}

}  // namespace nunchi::kernels
