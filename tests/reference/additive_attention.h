// Additive attention by its definition.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/additive_attention.h"

namespace nunchi::reference {

struct AdditiveAttention {
  std::vector<double> weights;  // [keys]
  std::vector<double> out;      // [value_width]
};

// The attention of query `row` over `keys` keys, starting at row `first_key`.
template <class T>
AdditiveAttention additive_attention(const kernels::AdditiveInputs<T>& in, std::int64_t row,
                                     std::int64_t first_key, std::int64_t keys) {
  AdditiveAttention result{{}, std::vector<double>(static_cast<std::size_t>(in.value_width))};
  double total = 0;
  for (std::int64_t j = first_key; j < first_key + keys; ++j) {
    double score = 0;
    for (std::int64_t a = 0; a < in.width; ++a) {
      score += double{in.score_vector[a]} *
               std::tanh(double{in.q[row * in.q_stride + a]} + double{in.k[j * in.k_stride + a]});
    }
    result.weights.push_back(std::exp(score));
    total += result.weights.back();
  }
  for (std::size_t j = 0; j < result.weights.size(); ++j) {
    result.weights[j] /= total;
    const T* v = in.v + (first_key + static_cast<std::int64_t>(j)) * in.v_stride;
    for (std::size_t c = 0; c < result.out.size(); ++c) result.out[c] += result.weights[j] * v[c];
  }
  return result;
}

}  // namespace nunchi::reference
