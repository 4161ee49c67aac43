// What both ways of a recurrent layer share on the GPU: a direction as its kernels see it, and the
// products of its steps.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/recurrent_walk.h"

namespace nunchi::kernels {

constexpr int kRecurrentThreads = 256;

template <class N>
struct RecurrentDirection {
  bool reverse;
  int width;  // H
  RecurrentPlan plan;
  N* gates;
  std::int64_t gates_stride;
  const N* first_h;
  const float* first_c;
  std::int64_t state_stride;
  N* previous;
  float* kept;

  __device__ N* gates_at(std::int64_t place, const RecurrentStep& step, int column) const {
    return gates + plan.row(place, step.token, reverse) * gates_stride + column;
  }
  // Of the state of the sentence at a place.
  __device__ std::int64_t state_at(std::int64_t place, int column) const {
    return plan.sentence_at(place) * state_stride + column;
  }
  __device__ std::int64_t step_at(std::int64_t row, int column) const {
    return row * width + column;
  }
  // lstm's cell before a step.
  __device__ float cell_before(std::int64_t place, const RecurrentStep& step, int column) const {
    if (step.token > 0) return kept[step_at(step.before + place, column)];
    return first_c != nullptr ? first_c[state_at(place, column)] : 0.0f;
  }
};

template <class T>
RecurrentDirection<Native<T>> direction_of(const RecurrentInputs<T>& in) {
  return {.reverse = in.reverse,
          .width = static_cast<int>(in.width),
          .plan = in.plan,
          .gates = native(in.gates),
          .gates_stride = in.gates_stride,
          .first_h = native(in.first_h),
          .first_c = in.first_c,
          .state_stride = in.state_stride,
          .previous = native(in.previous),
          .kept = in.kept};
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
