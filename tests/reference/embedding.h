// Table lookup with positions and dropout, and its gradients.
#pragma once

#include <vector>

#include "nunchi/kernels/embedding.h"
#include "tests/reference/dropout.h"

namespace nunchi::reference {

template <class T>
std::vector<double> embedding(const kernels::Embedding<T>& p) {
  std::vector<double> out;
  for (std::int64_t r = 0; r < row_count(p.rows); ++r) {
    for (std::int64_t i = 0; i < p.width; ++i) {
      double value = p.table[p.ids[r] * p.width + i] * p.scale;
      if (p.positions != nullptr) value += p.positions[p.rows.position[r] * p.width + i];
      out.push_back(value * dropout_factor(p.dropout, p.rows, r, i));
    }
  }
  return out;
}

// Adds to the gradients. An empty vector is not computed.
template <class T>
void embedding_backward(const kernels::EmbeddingBackward<T>& p, std::vector<double>& d_table,
                        std::vector<double>& d_positions) {
  for (std::int64_t r = 0; r < row_count(p.rows); ++r) {
    for (std::int64_t i = 0; i < p.width; ++i) {
      const double d = p.d_out[r * p.width + i] * dropout_factor(p.dropout, p.rows, r, i);
      if (!d_table.empty()) d_table[p.ids[r] * p.width + i] += p.scale * d;
      if (!d_positions.empty()) d_positions[p.rows.position[r] * p.width + i] += d;
    }
  }
}

}  // namespace nunchi::reference
