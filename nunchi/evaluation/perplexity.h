// Perplexity: the number of equally likely tokens that would be as uncertain as the model is.
#pragma once

#include <cmath>
#include <cstdint>

namespace nunchi::evaluation {

// exp of the mean negative log-likelihood (natural logarithm) per token. `tokens` must be at least
// 1.
inline double perplexity(double negative_log_likelihood, std::int64_t tokens) {
  return std::exp(negative_log_likelihood / static_cast<double>(tokens));
}

}  // namespace nunchi::evaluation
