// The second half of sums over rows: partial sums are added in a fixed order.
#pragma once

#include <cstdint>

#include "nunchi/device/cuda/context.h"

namespace nunchi::kernels::cuda {

// Sums of one or two rows of columns at once.
struct Partials {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;          // elements from one partial to the next; 0: width
  const float* partials = nullptr;  // [count, stride]
  float* out = nullptr;             // [width], added to; null: nobody wants it
  float* second = nullptr;          // [width], of the columns past `width`; null: nobody wants it
};

void add_partials(CudaContext& ctx, Partials p);

}  // namespace nunchi::kernels::cuda
