// Adam (Kingma and Ba) and AdamW (Loshchilov and Hutter) as their papers write them.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/optimizer.h"

namespace nunchi::reference {

struct Parameters {
  std::vector<double> weights, first, second;
};

inline double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return std::sqrt(squares);
}

// One step with gradients that are sums over tokens. Weight decay applies to the first `decayed`
// weights.
inline void adam(const kernels::AdamSettings& n, std::int64_t decayed,
                 std::vector<double> gradients, Parameters& p) {
  for (double& g : gradients) g /= n.tokens;
  const double norm = norm_of(gradients);
  if (n.max_norm > 0 && norm > n.max_norm) {
    for (double& g : gradients) g *= n.max_norm / (norm + 1e-6);
  }
  const auto t = static_cast<double>(n.step);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    p.first[i] = n.beta1 * p.first[i] + (1 - n.beta1) * gradients[i];
    p.second[i] = n.beta2 * p.second[i] + (1 - n.beta2) * gradients[i] * gradients[i];
    const double first = p.first[i] / (1 - std::pow(n.beta1, t));
    const double second = p.second[i] / (1 - std::pow(n.beta2, t));
    const double decay = static_cast<std::int64_t>(i) < decayed ? n.weight_decay * p.weights[i] : 0;
    p.weights[i] -= n.learning_rate * (first / (std::sqrt(second) + n.epsilon) + decay);
  }
}

}  // namespace nunchi::reference
