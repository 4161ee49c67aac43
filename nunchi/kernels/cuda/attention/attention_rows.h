// Score scaling for the tensor cores' tiles, and row operations of the f32 attention kernels.
#pragma once

#include <cstdint>
#include <string>

#include "nunchi/base/error.h"
#include "nunchi/kernels/cuda/attention/score_bias.h"
#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/limits.h"

namespace nunchi::kernels {

constexpr float kLn2 = 0.6931471805599453f;

// Turns products of 16 queries and 8 N keys into scores as base-2 exponents; `scale` includes the
// factor log2(e). `relative` is key - query of the lane's first element; rows are eight apart.
template <int N>
__device__ void scale_scores(float (&x)[N][4], float scale, const HeadBias& bias, int relative) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[n][e] *= scale;
      if (bias.active) x[n][e] += bias.at(relative + 8 * n + e % 2 - e / 2 * 8) * kLog2E;
    }
  }
}

// The functions below are for a warp that owns one row of up to 32 * ColumnsPerLane columns.

constexpr std::int64_t kMaxHeadWidth = limits_of(Device::cuda).head_width;
static_assert(kMaxHeadWidth <= 32 * kWarp);

inline void check_head_width(std::int64_t width) {
  if (width <= kMaxHeadWidth) return;
  throw Error("attention on the GPU supports heads of at most " + std::to_string(kMaxHeadWidth) +
              " columns, not " + std::to_string(width) + ".");
}

// Calls f.operator()<ColumnsPerLane>().
template <class F>
void dispatch_columns_per_lane(std::int64_t width, F&& f) {
  if (width <= 32) return f.template operator()<1>();
  if (width <= 64) return f.template operator()<2>();
  if (width <= 128) return f.template operator()<4>();
  if (width <= 256) return f.template operator()<8>();
  if (width <= 512) return f.template operator()<16>();
  f.template operator()<32>();
}

// Loads a row into the warp's shared memory.
template <int ColumnsPerLane, class N>
__device__ void load_row(float* to, const N* from, int width) {
#pragma unroll
  for (int i = 0; i < ColumnsPerLane; ++i) {
    const int d = threadIdx.x % kWarp + kWarp * i;
    if (d < width) to[d] = to_float(from[d]);
  }
  __syncwarp();
}

// A dot product computed by one lane: `a` is in shared memory, `b` is the lane's row.
template <class N>
__device__ float dot(const float* a, const N* b, int width, bool aligned) {
  float sum = 0;
  if (aligned) {
    for (int d = 0; d < width; d += 8) {
      float x[8], y[8];
      load8(a + d, x);
      load8(b + d, y);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += x[i] * y[i];
    }
  } else {
    for (int d = 0; d < width; ++d) sum += a[d] * to_float(b[d]);
  }
  return sum;
}

// sums += Σ (weight of lane r) * (row r), over `count` rows.
template <int ColumnsPerLane, class N>
__device__ void add_weighted(float (&sums)[ColumnsPerLane], float weight, const N* rows,
                             std::int64_t stride, int count, int width) {
  for (int r = 0; r < count; ++r) {
    const float factor = __shfl_sync(kAllLanes, weight, r);
#pragma unroll
    for (int i = 0; i < ColumnsPerLane; ++i) {
      const int d = threadIdx.x % kWarp + kWarp * i;
      if (d < width) sums[i] += factor * to_float(rows[r * stride + d]);
    }
  }
}

template <int ColumnsPerLane, class N>
__device__ void store_columns(N* row, const float (&sums)[ColumnsPerLane], float factor, int width,
                              bool accumulate) {
#pragma unroll
  for (int i = 0; i < ColumnsPerLane; ++i) {
    const int d = threadIdx.x % kWarp + kWarp * i;
    if (d >= width) continue;
    const float x = sums[i] * factor;
    row[d] = from_float<N>(accumulate ? to_float(row[d]) + x : x);
  }
}

}  // namespace nunchi::kernels
