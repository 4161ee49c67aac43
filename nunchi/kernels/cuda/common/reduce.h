// Sums over rows that CUDA's kernels share.
#pragma once

#include <cstdint>

#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// The second half of a sum over rows: partial sums are added in a fixed order, for one or two rows
// of columns at once.
struct Partials {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;          // elements from one partial to the next; 0: width
  const float* partials = nullptr;  // [count, stride]
  float* out = nullptr;             // [width], added to; null: nobody wants it
  float* second = nullptr;          // [width], of the columns past `width`; null: nobody wants it
};

void add_partials(CudaContext& ctx, Partials p);

// relu's way back and the gradient of the bias before it in one pass: d becomes zero where y is not
// positive; out += the sum of d's rows.
template <class T>
struct ReluColumnSum {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const T* y = nullptr;      // [rows, width] relu's output
  T* d = nullptr;            // [rows, width]
  Summed<T>* out = nullptr;  // [width]

  const char* name() const { return "relu_column_sum"; }
  Work work() const { return {.bytes = 3.0 * static_cast<double>(rows * width) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ReluColumnSum<T>& p);

}  // namespace nunchi::kernels
