// Products with int8 weights, one number at a time.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/product.h"

namespace nunchi::reference {

// A matrix as whole numbers from -127 to 127 with a scale for each row.
struct QuantizedMatrix {
  std::vector<int> values;  // [rows, columns]
  std::vector<float> scales;
};

inline QuantizedMatrix quantized(const float* x, std::int64_t rows, std::int64_t columns) {
  QuantizedMatrix result;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * columns;
    float largest = 0;
    for (std::int64_t i = 0; i < columns; ++i) largest = std::max(largest, std::fabs(row[i]));
    result.scales.push_back(largest / 127.0f);
    const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
    for (std::int64_t i = 0; i < columns; ++i) {
      // To nearest, ties to even.
      result.values.push_back(static_cast<int>(std::nearbyint(row[i] * inverse)));
    }
  }
  return result;
}

// c for the plain weight p.b [N, K], quantised, and its options.
inline std::vector<float> int8_product(const kernels::Product<float>& p) {
  const QuantizedMatrix x = quantized(p.a, p.m, p.k), w = quantized(p.b, p.n, p.k);
  std::vector<float> c(p.c, p.c + p.m * p.n);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        sum += x.values[std::size_t(i * p.k + k)] * w.values[std::size_t(j * p.k + k)];
      }
      // Rounded after each step, as the kernels must do. volatile: not contracted.
      volatile float value = static_cast<float>(sum) * x.scales[std::size_t(i)];
      value = value * w.scales[std::size_t(j)];
      if (p.bias != nullptr) value = value + p.bias[j];
      if (p.residual != nullptr) value = value + p.residual[i * p.n + j];
      if (p.relu && value < 0) value = 0;
      float& out = c[std::size_t(i * p.n + j)];
      out = p.accumulate ? out + value : static_cast<float>(value);
    }
  }
  return c;
}

}  // namespace nunchi::reference
