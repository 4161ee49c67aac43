// The initial weights of attention.
#include "nunchi/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nunchi/ops/tensors.h"

namespace nunchi::testing {
namespace {

// Q, K and V are initialised as separate matrices for any number of key/value heads.
TEST(AttentionWeights, AreInitialisedAsSeparateMatrices) {
  CpuContext context;
  for (const int kv_heads : {8, 2, 1}) {
    nn::Parameters parameters;
    const nn::Position position;
    const nn::AttentionConfig config{
        .width = 256, .heads = 8, .kv_heads = kv_heads, .head_width = 32};
    const nn::SelfAttention attention(parameters, "x", config, position);
    parameters.allocate(context, {});
    parameters.initialize(1);
    const std::vector<float> values =
        to_host<float>(parameters.find("x.qkv.weight")->variable.value());
    const auto deviation = [&](std::int64_t first_row, std::int64_t rows) {
      double squares = 0;
      for (std::int64_t i = first_row * 256; i < (first_row + rows) * 256; ++i) {
        squares += std::pow(values[static_cast<std::size_t>(i)], 2);
      }
      return std::sqrt(squares / static_cast<double>(rows * 256));
    };
    const std::int64_t key_rows = 32 * kv_heads;
    const auto xavier = [](std::int64_t rows) {
      return std::sqrt(2.0 / static_cast<double>(256 + rows));
    };
    EXPECT_NEAR(deviation(0, 256) / xavier(256), 1, 0.02) << kv_heads;
    EXPECT_NEAR(deviation(256, key_rows) / xavier(key_rows), 1, 0.02) << kv_heads;
    EXPECT_NEAR(deviation(256 + key_rows, key_rows) / xavier(key_rows), 1, 0.02) << kv_heads;
  }
}

}  // namespace
}  // namespace nunchi::testing
