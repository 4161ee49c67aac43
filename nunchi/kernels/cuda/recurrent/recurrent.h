// What both ways of a recurrent layer share on the GPU: a direction as its kernels see it, and the
// products of its steps.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/recurrent_walk.h"

namespace nunchi::kernels {

constexpr int kRecurrentThreads = 256;

template <class N>
__device__ N* gates_at(const RecurrentInputs<N>& in, std::int64_t place, const RecurrentStep& step,
                       int column) {
  return in.gates + in.plan.row(place, step.token, in.reverse) * in.gates_stride + column;
}
// Index of a column of the state of the sentence at a place.
template <class N>
__device__ std::int64_t state_at(const RecurrentInputs<N>& in, std::int64_t place, int column) {
  return in.plan.sentence_at(place) * in.state_stride + column;
}
// Index of a column of a row in step order.
template <class N>
__device__ std::int64_t step_at(const RecurrentInputs<N>& in, std::int64_t row, int column) {
  return row * in.width + column;
}
// lstm's cell before a step.
template <class N>
__device__ float cell_before(const RecurrentInputs<N>& in, std::int64_t place,
                             const RecurrentStep& step, int column) {
  if (step.token > 0) return in.kept[step_at(in, step.before + place, column)];
  return in.first_c != nullptr ? in.first_c[state_at(in, place, column)] : 0.0f;
}

__device__ inline float logistic(float x) { return 1 / (1 + expf(-x)); }

// A thread's place and column among so many places.
struct PlaceColumn {
  std::int64_t place;
  int column;
  __device__ explicit PlaceColumn(int width) {
    const std::int64_t i = std::int64_t{blockIdx.x} * kRecurrentThreads + threadIdx.x;
    place = i / width;
    column = static_cast<int>(i % width);
  }
};

// Rows of a product for so many sentences: a few sizes, since each is measured once.
inline std::int64_t padded_rows(std::int64_t rows) {
  constexpr std::int64_t kUnit = kSpareRows;
  if (rows > kUnit) return (rows + kUnit - 1) / kUnit * kUnit;
  std::int64_t padded = 1;
  while (padded < rows) padded *= 2;
  return padded;
}

// Rows past the count become zero.
template <class N>
__global__ void clear_tail_kernel(Rows rows, int width, std::int64_t stride, N* out) {
  const PlaceColumn at(width);
  if (at.place >= rows.capacity || at.place < real_rows(rows)) return;
  out[at.place * stride + at.column] = from_float<N>(0.0f);
}

template <class N>
void clear_tail(CudaContext& ctx, const Rows& rows, std::int64_t width, std::int64_t stride,
                N* out) {
  if (rows.capacity == 0) return;
  clear_tail_kernel<<<blocks_for(rows.capacity * width, kRecurrentThreads), kRecurrentThreads, 0,
                      ctx.stream()>>>(rows, static_cast<int>(width), stride, out);
  check_launch("recurrence");
}

}  // namespace nunchi::kernels
