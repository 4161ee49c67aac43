#include "nunchi/views/color.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace nunchi {
namespace {

// Between 0 and 255, as a grey printer sees it.
double grey_of(std::string_view color) {
  const auto channel = [&](std::size_t begin) {
    return std::stoi(std::string(color.substr(begin, 2)), nullptr, 16);
  };
  return 0.299 * channel(1) + 0.587 * channel(3) + 0.114 * channel(5);
}

TEST(Colors, LargerWeightsAreDarker) {
  double previous = 256;
  for (int percent = 0; percent <= 100; ++percent) {
    const double grey = grey_of(weight_color(percent / 100.0));
    EXPECT_LT(grey, previous) << percent;
    previous = grey;
  }
}

TEST(Colors, SignedValuesAreDarkerAwayFromZero) {
  for (const double sign : {-1.0, 1.0}) {
    double previous = grey_of(signed_color(0, 2)) + 1;
    for (double value = 0; value <= 2; value += 0.1) {
      const double grey = grey_of(signed_color(sign * value, 2));
      EXPECT_LT(grey, previous) << sign * value;
      previous = grey;
    }
  }
  EXPECT_NE(signed_color(-1, 1), signed_color(1, 1));
}

TEST(Colors, ValuesOutsideTakeTheNearestColor) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(weight_color(7), weight_color(1));
  EXPECT_EQ(weight_color(-1), weight_color(0));
  EXPECT_EQ(weight_color(infinity), weight_color(1));
  EXPECT_EQ(weight_color(std::nan("")), weight_color(0));
  EXPECT_EQ(weight_color(1, 0), weight_color(0));
  EXPECT_EQ(signed_color(-infinity, 3), signed_color(-3, 3));
}

TEST(Colors, InkCanBeReadOnEveryColor) {
  for (int percent = 0; percent <= 100; percent += 5) {
    const std::string color = weight_color(percent / 100.0);
    EXPECT_GT(std::abs(grey_of(color) - grey_of(ink_on(color))), 90) << color;
  }
}

TEST(Colors, SeriesDiffer) {
  std::set<std::string_view> colors;
  for (int i = 0; i < 8; ++i) colors.insert(series_style(i).color);
  EXPECT_EQ(colors.size(), 8u);
  EXPECT_EQ(series_style(8).color, series_style(0).color);
  for (int i = 1; i < 8; ++i) EXPECT_NE(series_style(i).dashes, series_style(i - 1).dashes);
}

}  // namespace
}  // namespace nunchi
