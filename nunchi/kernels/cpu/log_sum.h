// The logarithm of the sum of a row's exponentials.
#pragma once

#include <algorithm>
#include <cmath>

#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

template <class T>
T max_of_row(std::int64_t size, const T* x) {
  RowMax<T> row_max;
  for_each_vector<T>(size, [&]<class V>(std::int64_t i, V) { row_max.add(load<V>(x + i)); });
  return row_max.total();
}

// `max_logit` is the highest of the row.
template <class T>
double log_sum_of_row(std::int64_t size, const T* x, T max_logit) {
  // f64 between blocks: a sum of tens of thousands of exponentials loses three digits in f32.
  constexpr std::int64_t kBlock = 1024;
  double sum = 0;
  for (std::int64_t begin = 0; begin < size; begin += kBlock) {
    RowSum<T> part;
    for_each_vector<T>(std::min(kBlock, size - begin), [&]<class V>(std::int64_t i, V) {
      part.add(exponential<V>(load<V>(x + begin + i) - max_logit));
    });
    sum += static_cast<double>(part.total());
  }
  return static_cast<double>(max_logit) + std::log(sum);
}

}  // namespace
}  // namespace nunchi::kernels
