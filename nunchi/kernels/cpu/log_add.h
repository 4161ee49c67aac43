// Sums of exponentials in the logarithmic domain.
#pragma once

#include <algorithm>
#include <cmath>

namespace nunchi::kernels {
namespace {

// log(e^a + e^b); at least one of a and b must be above -inf. NaN stays NaN.
[[maybe_unused]] double log_add(double a, double b) {
  const double maximum = std::max(a, b);
  return maximum + std::log(std::exp(a - maximum) + std::exp(b - maximum));
}

}  // namespace
}  // namespace nunchi::kernels
