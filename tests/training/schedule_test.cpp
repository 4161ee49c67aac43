#include "nunchi/training/schedule.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

TEST(Schedule, PaperFollowsThePapersFormula) {
  const Schedule schedule{.kind = ScheduleKind::paper, .factor = 2, .warmup = 4000, .width = 512};
  for (const double s : {1.0, 2.0, 3999.0, 4000.0, 4001.0, 100000.0}) {
    const double expected =
        2 * std::pow(512, -0.5) * std::min(std::pow(s, -0.5), s * std::pow(4000, -1.5));
    EXPECT_NEAR(learning_rate(schedule, static_cast<std::int64_t>(s)), expected, 1e-15) << s;
  }
}

TEST(Schedule, InverseSquareRootReachesItsPeakAfterTheWarmup) {
  const Schedule schedule{.kind = ScheduleKind::inverse_sqrt, .peak = 5e-4, .warmup = 100};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 5e-6);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 50), 2.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 100), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 400), 2.5e-4);
}

TEST(Schedule, CosineAndLinearEndAtTheFinalRateAndStayThere) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear}) {
    const Schedule schedule{
        .kind = kind, .peak = 1e-3, .warmup = 10, .final = 1e-5, .total_steps = 110};
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 5), 5e-4);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 1e-3);
    EXPECT_NEAR(learning_rate(schedule, 60), (1e-3 + 1e-5) / 2, 1e-15);
    EXPECT_NEAR(learning_rate(schedule, 110), 1e-5, 1e-18);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 5000), 1e-5);
    for (std::int64_t step = 11; step <= 110; ++step) {
      EXPECT_LT(learning_rate(schedule, step), learning_rate(schedule, step - 1));
    }
  }
}

TEST(Schedule, CosineFollowsACosine) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .peak = 1, .warmup = 0, .total_steps = 100};
  EXPECT_NEAR(learning_rate(schedule, 25), (1 + std::sqrt(0.5)) / 2, 1e-12);
}

TEST(Schedule, ConstantIsConstantAfterTheWarmup) {
  const Schedule schedule{.kind = ScheduleKind::constant, .peak = 3e-4, .warmup = 3};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 3e-4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1000000), 3e-4);
}

TEST(Schedule, TheFinalRateIsALowerBoundAfterTheWarmup) {
  const Schedule schedule{
      .kind = ScheduleKind::inverse_sqrt, .peak = 1e-3, .warmup = 10, .final = 1e-4};
  EXPECT_LT(learning_rate(schedule, 1), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 100000), 1e-4);
}

TEST(Schedule, EveryKindWorksWithoutAWarmup) {
  for (const ScheduleKind kind :
       {ScheduleKind::paper, ScheduleKind::inverse_sqrt, ScheduleKind::cosine, ScheduleKind::linear,
        ScheduleKind::constant}) {
    const Schedule schedule{.kind = kind, .warmup = 0, .total_steps = 50};
    const double first = learning_rate(schedule, 1);
    EXPECT_TRUE(std::isfinite(first) && first > 0);
  }
}

TEST(Schedule, InvalidNumbersAreErrors) {
  EXPECT_THROW(learning_rate({}, 0), Error);
  EXPECT_THROW(learning_rate({.peak = NAN}, 1), Error);
  EXPECT_THROW(learning_rate({.peak = -1}, 1), Error);
  EXPECT_THROW(learning_rate({.warmup = -1}, 1), Error);
  const std::string message =
      error_of([] { check({.kind = ScheduleKind::cosine, .warmup = 100, .total_steps = 100}); });
  EXPECT_NE(message.find("training.max_steps"), std::string::npos) << message;
}

}  // namespace
}  // namespace nunchi::testing
