// Sums in a fixed order, independent of the number of threads and of the vector width.
#pragma once

#include <cstdint>

#include "nunchi/kernels/run.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// out[c] += sum over rows of x[r, c]: the gradient of a bias.
template <class T>
struct ColumnSum {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const T* x = nullptr;           // [rows, width]
  Accumulator<T>* out = nullptr;  // [width]

  const char* name() const { return "column_sum"; }
  Work work() const { return {.bytes = static_cast<double>(rows * width) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ColumnSum<T>& p);

// out[0] = sum of x[i] or of x[i]², in f64.
template <class T>
struct Sum {
  std::int64_t count = 0;
  bool squares = false;
  const T* x = nullptr;  // [count]
  double* out = nullptr;

  const char* name() const { return squares ? "squared_norm" : "sum"; }
  Work work() const { return {.bytes = static_cast<double>(count) * sizeof(T)}; }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Sum<T>& p);

}  // namespace nunchi::kernels
