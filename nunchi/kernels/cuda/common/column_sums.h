// Sums over rows, shared by the CUDA kernels.
#pragma once

#include <cstdint>

#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// The second stage of a sum over rows: adds partial sums in a fixed order, for one or two results
// at once. Two results have their partial sums side by side.
struct Partials {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;          // elements between two partials; 0: width
  const float* partials = nullptr;  // [count, stride]
  // The sums are added to these; null: not wanted.
  float* out = nullptr;         // [width] of columns 0 to width - 1
  float* second_out = nullptr;  // [width] of columns width to 2 · width - 1
};

void add_partials(CudaContext& ctx, Partials p);

// relu's backward pass fused with the gradient of the bias before it: d becomes zero where y is not
// positive; out += the sum of d's rows.
template <class T>
struct ReluColumnSum {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const T* y = nullptr;           // [rows, width] relu's output
  T* d = nullptr;                 // [rows, width]
  Accumulator<T>* out = nullptr;  // [width]

  const char* name() const { return "relu_column_sum"; }
  Work work() const { return {.bytes = 3.0 * static_cast<double>(rows * width) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ReluColumnSum<T>& p);

}  // namespace nunchi::kernels
