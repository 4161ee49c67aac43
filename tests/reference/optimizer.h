// Adam (Kingma and Ba) and AdamW (Loshchilov and Hutter) as their papers write them.
#pragma once

#include <cmath>
#include <vector>

#include "nunchi/kernels/optimizer.h"

namespace nunchi::reference {

struct Parameters {
  std::vector<double> weights, first_moment, second_moment;
};

inline double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return std::sqrt(squares);
}

// One step with gradients that are sums over tokens. Weight decay applies to the first `decayed`
// weights.
inline void adam(const kernels::AdamSettings& settings, std::int64_t decayed,
                 std::vector<double> gradients, Parameters& p) {
  for (double& g : gradients) g /= settings.tokens;
  const double norm = norm_of(gradients);
  if (settings.max_norm > 0 && norm > settings.max_norm) {
    for (double& g : gradients) g *= settings.max_norm / (norm + 1e-6);
  }
  const auto t = static_cast<double>(settings.step);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    double &first = p.first_moment[i], &second = p.second_moment[i];
    first = settings.beta1 * first + (1 - settings.beta1) * gradients[i];
    second = settings.beta2 * second + (1 - settings.beta2) * gradients[i] * gradients[i];
    const double corrected_first = first / (1 - std::pow(settings.beta1, t));
    const double corrected_second = second / (1 - std::pow(settings.beta2, t));
    const double decay =
        static_cast<std::int64_t>(i) < decayed ? settings.weight_decay * p.weights[i] : 0;
    p.weights[i] -= settings.learning_rate *
                    (corrected_first / (std::sqrt(corrected_second) + settings.epsilon) + decay);
  }
}

}  // namespace nunchi::reference
