#include "nunchi/views/chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/errors.h"

namespace nunchi::testing {
namespace {

LineChart two_lines() {
  return {.title = "Loss",
          .x = {.label = "step"},
          .y = {.label = "loss (nats)"},
          .lines = {{"first", {1, 2, 3}, {3, 2, 1}}, {"second", {1, 2, 3}, {1, NAN, 3}}}};
}

TEST(AxisTicks, AreRoundAndWithinTheRange) {
  EXPECT_EQ(axis_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  for (const auto& [low, high] :
       {std::pair{0.0, 7.3}, {-3.1, 2.2}, {0.001, 0.0042}, {5.0, 50000.0}}) {
    const std::vector<double> ticks = axis_ticks(low, high, 6);
    EXPECT_GE(ticks.size(), 3u);
    EXPECT_LE(ticks.size(), 14u);
    for (const double tick : ticks) EXPECT_TRUE(tick >= low - 1e-9 && tick <= high + 1e-9) << tick;
  }
  EXPECT_EQ(axis_ticks(2, 2, 5), std::vector<double>{2});
}

TEST(Charts, HaveTitlesAxesUnitsAndLegends) {
  const std::string svg =
      chart_sheet({two_lines()}, {.title = "Sheet", .subtitle = "시트", .footer = {"verdict"}});
  for (const char* part :
       {"Sheet", "시트", "verdict", "Loss", "step", "loss (nats)", "first", "second"}) {
    EXPECT_TRUE(says(svg, part)) << part;
  }
}

// In grey, two lines differ in their dashes and the cells of a heat map in lightness.
TEST(Charts, AreReadableInGrey) {
  const std::string lines = chart_sheet({two_lines()}, {});
  EXPECT_TRUE(says(lines, "stroke-dasharray")) << lines;
  const auto lightness = [](double value) {
    const std::string svg =
        chart_sheet({HeatMap{.columns = {"c"}, .rows = {"r"}, .values = {value}}}, {});
    // The first filled rectangle after the background.
    const std::size_t background = svg.find("fill=\"#");
    const std::size_t fill = svg.find("fill=\"#", svg.find("<rect", background));
    const std::string color = svg.substr(fill + 7, 6);
    return std::stoi(color.substr(0, 2), nullptr, 16) + std::stoi(color.substr(2, 2), nullptr, 16) +
           std::stoi(color.substr(4, 2), nullptr, 16);
  };
  EXPECT_GT(lightness(0), lightness(0.5));
  EXPECT_GT(lightness(0.5), lightness(1));
}

TEST(Charts, SizesThatDoNotFitAreErrors) {
  LineChart line = two_lines();
  line.lines[0].y.pop_back();
  EXPECT_TRUE(says(error_of([&] { chart_sheet({line}, {}); }), "as many x as y"));
  const BarChart bars{.categories = {"a", "b"}, .bars = {{"x", {1}}}};
  EXPECT_TRUE(says(error_of([&] { chart_sheet({bars}, {}); }), "one value for each category"));
  const HeatMap map{.columns = {"a"}, .rows = {"b"}, .values = {1, 2}};
  EXPECT_TRUE(says(error_of([&] { chart_sheet({map}, {}); }), "one value for each cell"));
  LineChart logarithmic = two_lines();
  logarithmic.x.logarithmic = true;
  logarithmic.lines[0].x[0] = -1;
  EXPECT_TRUE(says(error_of([&] { chart_sheet({logarithmic}, {}); }), "values above 0"));
}

// A line without values, constant lines and values that are not finite are drawn without an error.
TEST(Charts, OddValuesAreDrawn) {
  LineChart chart = two_lines();
  chart.lines.push_back({"empty", {}, {}});
  chart.lines.push_back({"constant", {1, 2}, {5, 5}});
  chart.lines.push_back({"nothing", {1, 2}, {NAN, INFINITY}});
  EXPECT_TRUE(says(chart_sheet({chart}, {}), "constant"));
  const BarChart bars{.categories = {"a", "b"}, .bars = {{"x", {-1, NAN}}, {"y", {2, 0}}}};
  EXPECT_TRUE(says(chart_sheet({bars, LineChart{}}, {.width = 1920, .height = 1080}), "1920"));
}

}  // namespace
}  // namespace nunchi::testing
