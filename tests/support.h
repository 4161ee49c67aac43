// Shared by tests: instruction sets, random tensors, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "nunchi/base/random.h"
#include "nunchi/device/context.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/text/tokens.h"
#include "tests/errors.h"

namespace nunchi::testing {

// The special tokens of tests that have no tokenizer.
inline const DecoderTokens kTokens = decoder_tokens(kUsualSpecialTokens);

// Every instruction set that this processor can run.
inline std::vector<Isa> all_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(detected_isa()); ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}

// Numbers in [-scale, scale) that depend only on `seed`.
template <class T>
std::vector<T> random_values(std::int64_t count, std::uint64_t seed, double scale = 1) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const philox::Key key = philox::key_of({.seed = seed});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const philox::Words words = philox::bits({static_cast<std::uint32_t>(i), 0, 0, 0}, key);
    values[i] = static_cast<T>(scale * (static_cast<double>(words[0]) * 0x1p-31 - 1));
  }
  return values;
}

template <class T>
Tensor random_tensor(ContextBase& context, const Shape& shape, std::uint64_t seed,
                     double scale = 1) {
  return from_host(context, random_values<T>(shape.elements(), seed, scale), shape);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The largest |a - b|; infinite if the sizes differ.
template <class A, class B>
double largest_difference(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(difference)) return INFINITY;
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace nunchi::testing
