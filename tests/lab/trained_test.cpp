// Every trained lab runs through with a few steps; trained_slow.cpp runs them in full.
#include <gtest/gtest.h>

#include <cmath>

#include "nunchi/lab/report.h"
#include "tests/errors.h"

namespace nunchi::testing {
namespace {

class TrainedLab : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainedLab, RunsThroughWithFewSteps) {
  CpuContext context({.threads = 1});
  double done = 0;
  const lab::Report report = lab::run(
      lab::find_lab(GetParam()),
      {.context = context, .effort = 0.004, .progress = [&](const lab::Progress& progress) {
         EXPECT_GE(progress.done, done - 1e-9);
         EXPECT_LE(progress.done, 1 + 1e-9);
         done = progress.done;
       }});
  for (const auto& [name, value] : report.result.figures) EXPECT_TRUE(std::isfinite(value)) << name;
  EXPECT_FALSE(report.result.charts.empty());
  EXPECT_FALSE(report.result.table.rows.empty());
  for (const auto& row : report.result.table.rows)
    EXPECT_EQ(row.size(), report.result.table.columns.size());
  EXPECT_TRUE(says(lab::picture(report), "</svg>"));
  EXPECT_TRUE(says(lab::slide(report), "</svg>"));
  EXPECT_FALSE(report.result.finding.ko.empty() || report.result.not_shown.ko.empty());
}

INSTANTIATE_TEST_SUITE_P(Labs, TrainedLab,
                         ::testing::Values("order", "mask", "heads", "coreference", "cat",
                                           "bottleneck", "teacher-forcing", "residual", "length",
                                           "places", "search", "scale", "learning"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace nunchi::testing
