// Matrix products by three loops.
#pragma once

#include <algorithm>
#include <vector>

#include "nunchi/kernels/product.h"

namespace nunchi::reference {

// The expected c; reads the current c if the product accumulates.
template <class T>
std::vector<double> product(const kernels::Product<T>& p) {
  std::vector<double> c;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = p.accumulate ? p.c[i * p.n + j] : 0.0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const double a = p.transpose_a ? p.a[k * p.m + i] : p.a[i * p.k + k];
        const double b = p.transpose_b ? p.b[j * p.k + k] : p.b[k * p.n + j];
        sum += a * b;
      }
      if (p.bias != nullptr) sum += p.bias[j];
      if (p.residual != nullptr) sum += p.residual[i * p.n + j];
      c.push_back(p.relu ? std::max(sum, 0.0) : sum);
    }
  }
  return c;
}

}  // namespace nunchi::reference
