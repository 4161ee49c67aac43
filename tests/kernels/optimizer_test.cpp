#include "nunchi/kernels/optimizer.h"

#include "nunchi/kernels/reduce.h"
#include "tests/reference/optimizer.h"
#include "tests/reference/versions.h"

namespace nunchi::testing {
namespace {

using kernels::Adam;
using kernels::AdamReport;
using kernels::AdamSettings;
using kernels::ClipScale;

// Compares a few steps of the kernels with the reference. Gradients are sums over settings.tokens.
template <class T>
void expect_steps(CpuContext& ctx, AdamSettings settings, std::int64_t count,
                  std::int64_t decayed) {
  std::vector<T> weights = random_values<T>(count, 1), gradients;
  std::vector<T> first_moment(static_cast<std::size_t>(count)),
      second_moment(static_cast<std::size_t>(count));
  reference::Parameters expected{{weights.begin(), weights.end()},
                                 std::vector<double>(static_cast<std::size_t>(count)),
                                 std::vector<double>(static_cast<std::size_t>(count))};
  for (int step = 1; step <= 5; ++step) {
    gradients = random_values<T>(count, 100 + step, settings.tokens);
    settings.step = step;
    settings.learning_rate *= 0.9;
    const std::vector<double> summed(gradients.begin(), gradients.end());
    double squared_norm = 0;
    AdamReport report;
    kernels::run(ctx,
                 kernels::Sum<T>{
                     .count = count, .squares = true, .x = gradients.data(), .out = &squared_norm});
    kernels::run(
        ctx, ClipScale{.settings = &settings, .squared_norm = &squared_norm, .report = &report});
    EXPECT_NEAR(report.gradient_norm, reference::norm_of(summed) / settings.tokens, 1e-9);
    kernels::run(ctx, Adam<T>{.count = count,
                              .decayed_count = decayed,
                              .settings = &settings,
                              .report = &report,
                              .weights = weights.data(),
                              .gradients = gradients.data(),
                              .first_moment = first_moment.data(),
                              .second_moment = second_moment.data()});
    reference::adam(settings, decayed, summed, expected);
    expect_close("weights", weights, expected.weights);
    expect_close("first_moment", first_moment, expected.first_moment);
    expect_close("second_moment", second_moment, expected.second_moment);
    expect_zero_from("gradients", gradients, 0);
  }
}

constexpr std::int64_t kCounts[] = {1, 3, 37, 130, 20001};

TEST(Adam, MatchesThePaper) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t count : kCounts) {
      expect_steps<T>(ctx, {.learning_rate = 0.05, .tokens = 300}, count, 0);
    }
  });
}

TEST(Adam, DecaysTheFirstWeightsOnly) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const std::int64_t count : kCounts) {
      for (const std::int64_t decayed : {std::int64_t{0}, count / 2, count}) {
        expect_steps<T>(ctx, {.learning_rate = 0.05, .weight_decay = 0.3}, count, decayed);
      }
    }
  });
}

TEST(Adam, ClipsByTheNormOfTheMeanGradient) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const double max_norm : {0.1, 1000.0}) {
      AdamSettings settings{
          .learning_rate = 0.05, .epsilon = 1e-3, .max_norm = max_norm, .tokens = 17};
      expect_steps<T>(ctx, settings, 130, 64);
    }
  });
}

TEST(Adam, FirstStepHasTheSizeOfTheLearningRate) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    const AdamSettings settings{.learning_rate = 0.25, .step = 1};
    const AdamReport report{.scale = 1};
    std::vector<T> weights(4), gradients{T(5), T(-3), T(0.01), T(0)}, first_moment(4),
        second_moment(4);
    kernels::run(ctx, Adam<T>{.count = 4,
                              .settings = &settings,
                              .report = &report,
                              .weights = weights.data(),
                              .gradients = gradients.data(),
                              .first_moment = first_moment.data(),
                              .second_moment = second_moment.data()});
    expect_close("weights", weights, {-0.25, 0.25, -0.25, 0}, 1e-5);
  });
}

TEST(ClipScale, ClipsOnlyLargeNorms) {
  CpuContext ctx({.threads = 1});
  AdamReport report;
  const AdamSettings settings{.max_norm = 2, .tokens = 4};
  const double nine = 9, large = 160000;
  kernels::run(ctx, ClipScale{.settings = &settings, .squared_norm = &nine, .report = &report});
  EXPECT_EQ(report.gradient_norm, 0.75);
  EXPECT_EQ(report.scale, 0.25);
  kernels::run(ctx, ClipScale{.settings = &settings, .squared_norm = &large, .report = &report});
  EXPECT_EQ(report.gradient_norm, 100);
  EXPECT_EQ(report.scale, 2 / (100 + 1e-6) / 4);
}

TEST(Adam, NonFiniteGradientSkipsTheStep) {
  for_every_isa_and_type([]<class T>(CpuContext& ctx) {
    for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      const AdamSettings settings{
          .learning_rate = 0.1, .weight_decay = 0.5, .max_norm = 1, .step = 3};
      const auto initial_weights = random_values<T>(37, 1),
                 initial_moments = random_values<T>(37, 2);
      std::vector<T> weights = initial_weights, first_moment = initial_moments,
                     second_moment = initial_moments, gradients(37, T(1));
      gradients[20] = static_cast<T>(bad);
      double squared_norm = 0;
      AdamReport report;
      kernels::run(ctx,
                   kernels::Sum<T>{
                       .count = 37, .squares = true, .x = gradients.data(), .out = &squared_norm});
      kernels::run(
          ctx, ClipScale{.settings = &settings, .squared_norm = &squared_norm, .report = &report});
      EXPECT_FALSE(std::isfinite(report.gradient_norm));
      EXPECT_EQ(report.scale, 0);
      kernels::run(ctx, Adam<T>{.count = 37,
                                .decayed_count = 37,
                                .settings = &settings,
                                .report = &report,
                                .weights = weights.data(),
                                .gradients = gradients.data(),
                                .first_moment = first_moment.data(),
                                .second_moment = second_moment.data()});
      EXPECT_TRUE(same_bits(weights, initial_weights));
      EXPECT_TRUE(same_bits(first_moment, initial_moments));
      EXPECT_TRUE(same_bits(second_moment, initial_moments));
      expect_zero_from("gradients", gradients, 0);
    }
  });
}

TEST(Adam, NumberOfThreadsDoesNotChangeBits) {
  expect_same_bits_for_any_threads([]<class T>(CpuContext& ctx) {
    const AdamSettings settings{.learning_rate = 0.1, .weight_decay = 0.1, .step = 2};
    const AdamReport report{.scale = 0.7};
    const std::int64_t count = 50001;
    auto weights = random_values<T>(count, 1), gradients = random_values<T>(count, 2);
    auto first_moment = random_values<T>(count, 3);
    std::vector<T> second_moment(static_cast<std::size_t>(count), T(0.25));
    kernels::run(ctx, Adam<T>{.count = count,
                              .decayed_count = 20003,
                              .settings = &settings,
                              .report = &report,
                              .weights = weights.data(),
                              .gradients = gradients.data(),
                              .first_moment = first_moment.data(),
                              .second_moment = second_moment.data()});
    return weights;
  });
}

}  // namespace
}  // namespace nunchi::testing
