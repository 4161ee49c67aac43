// Shared by the forward and backward pass of a recurrent layer on the GPU.
#pragma once

#include "nunchi/kernels/cuda/common/device.h"
#include "nunchi/kernels/product.h"
#include "nunchi/kernels/recurrent_walk.h"

namespace nunchi::kernels {

constexpr int kRecurrentThreads = 256;

template <class N>
__device__ N* gates_at(const RecurrentInputs<N>& in, std::int64_t rank, const RecurrentStep& step,
                       int column) {
  return in.gates + in.plan.row(rank, step.index, in.reverse) * in.gates_stride + column;
}
// Index into the states [B, H] of the sentence at a rank.
template <class N>
__device__ std::int64_t state_at(const RecurrentInputs<N>& in, std::int64_t rank, int column) {
  return in.plan.sentence_at(rank) * in.state_stride + column;
}
// Index into a matrix [rows, H] in step order.
template <class N>
__device__ std::int64_t step_order_at(const RecurrentInputs<N>& in, std::int64_t row, int column) {
  return row * in.width + column;
}
// The LSTM cell state before a step.
template <class N>
__device__ float previous_cell(const RecurrentInputs<N>& in, std::int64_t rank,
                               const RecurrentStep& step, int column) {
  if (step.index > 0) return in.saved[step_order_at(in, step.previous_first + rank, column)];
  return in.initial_c != nullptr ? in.initial_c[state_at(in, rank, column)] : 0.0f;
}

__device__ inline float logistic(float x) { return 1 / (1 + expf(-x)); }

// The rank (or row) and column of a thread.
struct RankColumn {
  std::int64_t rank;
  int column;
  __device__ explicit RankColumn(int width) {
    const std::int64_t i = std::int64_t{blockIdx.x} * kRecurrentThreads + threadIdx.x;
    rank = i / width;
    column = static_cast<int>(i % width);
  }
};

// Rounds a product's row count up to one of a few sizes, since the fastest algorithm is measured
// for each size.
inline std::int64_t padded_rows(std::int64_t rows) {
  constexpr std::int64_t kMultiple = kSpareRows;
  if (rows > kMultiple) return (rows + kMultiple - 1) / kMultiple * kMultiple;
  std::int64_t padded = 1;
  while (padded < rows) padded *= 2;
  return padded;
}

// Rows past the count become zero.
template <class N>
__global__ void clear_tail_kernel(Rows rows, int width, std::int64_t stride, N* out) {
  const RankColumn thread(width);
  if (thread.rank >= rows.capacity || thread.rank < real_rows(rows)) return;
  out[thread.rank * stride + thread.column] = from_float<N>(0.0f);
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
