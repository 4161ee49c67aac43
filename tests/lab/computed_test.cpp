// The labs that need no training, against numbers that were computed independently in f64.
#include <gtest/gtest.h>

#include "nunchi/lab/report.h"

namespace nunchi::testing {
namespace {

lab::Report run_lab(const char* name, double effort = 1) {
  CpuContext context({.threads = 1});
  return lab::run(lab::find_lab(name), {.context = context, .effort = effort});
}

void expect_within(double value, double expected, double share = 0.02) {
  EXPECT_NEAR(value, expected, share * expected);
}

TEST(ScalingLab, UnscaledScoresMakeTheSoftmaxSharp) {
  const lab::Report report = run_lab("scaling");
  const lab::Figures& f = report.result.figures;
  expect_within(f["largest_unscaled_64"], 0.87);
  expect_within(f["largest_scaled_64"], 0.32);
  expect_within(f["gradient_unscaled_64"], 0.087);
  expect_within(f["gradient_scaled_64"], 0.206);
  EXPECT_EQ(report.verdict, lab::Verdict::holds);
}

TEST(PositionsLab, DistancesAndPeriods) {
  const lab::Report report = run_lab("positions");
  const lab::Figures& f = report.result.figures;
  expect_within(f["distance_3_4"], 3.71);
  expect_within(f["distance_3_500"], 19.25);
  EXPECT_EQ(f["monotone_until"], 43);
  expect_within(f["period_0"], 6.3);
  expect_within(f["period_10"], 7.5);
  expect_within(f["period_300"], 1387);
  expect_within(f["period_511"], 60611);
  EXPECT_EQ(report.verdict, lab::Verdict::partly);
}

TEST(CollisionsLab, SmallWidthsCollideLargeOnesDoNot) {
  const lab::Report report = run_lab("collisions");
  const lab::Figures& f = report.result.figures;
  expect_within(f["nearest_far_8"], 0.65);
  expect_within(f["neighbours_8"], 0.96);
  expect_within(f["nearest_far_512"], 12.8);
  expect_within(f["neighbours_512"], 3.7);
  EXPECT_EQ(report.verdict, lab::Verdict::fails);
}

TEST(WorkedLab, FindsWhatDoesNotFollow) {
  const lab::Report report = run_lab("worked");
  const lab::Figures& f = report.result.figures;
  expect_within(f["self_cat"], 0.683);
  expect_within(f["self_sleeps"], 0.307);
  EXPECT_NEAR(f["masked_sum"], 0.80, 1e-9);
  EXPECT_NEAR(f["residual_0"], 4.37, 1e-5);
  EXPECT_NEAR(f["residual_1"], -1.01, 1e-5);
  EXPECT_EQ(report.verdict, lab::Verdict::partly);
}

TEST(MemoryLab, TiledAttentionEqualsTheMatrixInLessMemory) {
  const lab::Report report = run_lab("memory", 0.125);  // up to 1,024 tokens
  const lab::Figures& f = report.result.figures;
  EXPECT_EQ(f["tokens"], 1024);
  EXPECT_LT(f["largest_difference"], 1e-5);
  EXPECT_GT(f["matrix_memory_exponent"], 1.8);
  EXPECT_LT(f["tiled_memory_exponent"], 1.2);
  EXPECT_GT(f["matrix_mib"], 5 * f["tiled_mib"]);
}

}  // namespace
}  // namespace nunchi::testing
