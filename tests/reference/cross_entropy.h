// Label-smoothed cross-entropy of one chunk of rows, by its definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "nunchi/kernels/cross_entropy.h"
#include "tests/reference/dropout.h"

namespace nunchi::reference {

struct CrossEntropy {
  std::vector<double> loss;      // [chunk]
  std::vector<double> gradient;  // [chunk, V]
};

// loss = -sum_v q[v] log p[v] with q = (1 - s) (v == target) + s / V; its gradient is p - q.
template <class T>
CrossEntropy cross_entropy(const kernels::CrossEntropy<T>& p) {
  CrossEntropy result;
  for (std::int64_t r = 0; r < p.chunk_rows; ++r) {
    const bool real = p.first_row + r < row_count(p.rows);
    const T* x = p.logits + r * p.vocabulary;
    const double max_logit = *std::max_element(x, x + p.vocabulary);
    double total = 0, loss = 0;
    for (std::int64_t v = 0; v < p.vocabulary; ++v) total += std::exp(x[v] - max_logit);
    for (std::int64_t v = 0; v < p.vocabulary; ++v) {
      const double log_p = x[v] - max_logit - std::log(total);
      const double q = (v == p.targets[r] ? 1 - p.smoothing : 0) +
                       p.smoothing / static_cast<double>(p.vocabulary);
      if (q != 0) loss -= q * log_p;
      result.gradient.push_back(real ? std::exp(log_p) - q : 0);
    }
    result.loss.push_back(real ? loss : 0);
  }
  return result;
}

}  // namespace nunchi::reference
