// Given numbers on a device, for jobs that need the same inputs on all devices.
#pragma once

#include <vector>

#include "tests/support.h"

namespace nunchi::testing {

// A tensor of `dtype` with the values rounded to bf16.
inline Tensor rounded_tensor(ContextBase& context, DType dtype, const std::vector<float>& values,
                             const Shape& shape) {
  std::vector<float> rounded;
  for (const float x : values) rounded.push_back(static_cast<float>(BFloat16(x)));
  const Tensor exact = from_host(context, rounded, shape);
  if (dtype == DType::f32) return exact;
  const Tensor converted = Tensor::empty(context, dtype, shape);
  convert(exact, converted);
  return converted;
}

// Compares relative to 1 + |expected|. Infinities and NaNs must be in the same elements.
inline void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isfinite(expected[i])) {
      ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << "at " << i;
    } else if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << found[i] << " at " << i;
    } else {
      ASSERT_EQ(found[i], expected[i]) << "at " << i;
    }
  }
}

}  // namespace nunchi::testing
