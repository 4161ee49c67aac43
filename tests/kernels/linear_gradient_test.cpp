#include "nunchi/kernels/linear_gradient.h"

#include "tests/support.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kRows = 3, kWidth = 2, kInputs = 4;

TEST(LinearGradient, GradientIsZeroWhereReluWasZero) {
  CpuContext ctx({.threads = 2});
  const std::vector<float> d_y = {1, 2, 3}, w = {1, 10, 100, 1000};
  const std::vector<float> y = {1, 0, 2, 0, 0, 3, 0, 0, 5, 5, 5, 5};
  std::vector<float> d_x(12, NAN), d_bias = {1, 1, 1, 1};
  kernels::run(
      ctx, kernels::ActivationGradientProduct<float>{
               .product = {.m = 3, .n = 4, .k = 1, .a = d_y.data(), .b = w.data(), .c = d_x.data()},
               .y = y.data(),
               .d_bias = d_bias.data()});
  EXPECT_EQ(d_x, (std::vector<float>{1, 0, 100, 0, 0, 20, 0, 0, 3, 30, 300, 3000}));
  EXPECT_EQ(d_bias, (std::vector<float>{5, 51, 401, 3001}));
}

TEST(LinearGradient, ProfileListsBothKernels) {
  CpuContext ctx({.threads = 2});
  Profile profile;
  ctx.set_profile(&profile);
  const std::vector<float> d_y(kRows * kWidth, 1), x(kRows * kInputs, 2);
  std::vector<float> d_weight(kWidth * kInputs, 1), d_bias(kWidth, 1);
  kernels::run(ctx, kernels::WeightGradient<float>{.product = {.m = kWidth,
                                                               .n = kInputs,
                                                               .k = kRows,
                                                               .a = d_y.data(),
                                                               .transpose_a = true,
                                                               .b = x.data(),
                                                               .c = d_weight.data(),
                                                               .accumulate = true,
                                                               .label = "weight"},
                                                   .d_bias = d_bias.data()});
  ctx.set_profile(nullptr);
  EXPECT_EQ(d_weight, std::vector<float>(kWidth * kInputs, 7));
  EXPECT_EQ(d_bias, std::vector<float>(kWidth, 4));
  EXPECT_EQ(profile.entries().size(), 2u);
  EXPECT_EQ(profile.entries().count("weight"), 1u);
  EXPECT_EQ(profile.entries().count("column_sum"), 1u);
}

}  // namespace
}  // namespace nunchi::testing
