#include "nunchi/nn/position/sinusoidal.h"

#include "tests/support.h"

namespace nunchi::testing {
namespace {

TEST(Sinusoidal, EqualsTheFormulaForPositionsZeroToTenThousand) {
  CpuContext context;
  constexpr std::int64_t kWidth = 512, kPositions = 10001;
  nn::Parameters parameters;
  parameters.add("any", {1}, nn::Init::zeros());
  parameters.allocate(context, {});
  const nn::Sinusoidal position(parameters, kWidth);
  const std::vector<float> table = to_host<float>(position.embed(kPositions).value());
  double largest = 0;
  for (std::int64_t pos = 0; pos < kPositions; ++pos) {
    for (std::int64_t i = 0; 2 * i < kWidth; ++i) {
      const double angle =
          static_cast<double>(pos) / std::pow(10000.0, 2.0 * static_cast<double>(i) / kWidth);
      const auto at = static_cast<std::size_t>(pos * kWidth + 2 * i);
      largest = std::max({largest, std::fabs(table[at] - std::sin(angle)),
                          std::fabs(table[at + 1] - std::cos(angle))});
    }
  }
  EXPECT_LE(largest, 1e-6);
}

TEST(Sinusoidal, LooksAsTheNotesShow) {
  EXPECT_NEAR(nn::sinusoid(3, 0, 512), std::sin(3.0), 1e-15);
  EXPECT_NEAR(nn::sinusoid(3, 1, 512), std::cos(3.0), 1e-15);
  EXPECT_NEAR(nn::sinusoid(3, 510, 512), std::sin(3.0 / std::pow(10000.0, 510.0 / 512)), 1e-15);
}

TEST(Learned, RefusesASentenceLongerThanItsTable) {
  CpuContext context;
  nn::Parameters parameters;
  const auto position = nn::make_position(
      parameters, "p", {.kind = nn::PositionKind::learned, .width = 4, .maximum = 3});
  parameters.allocate(context, {});
  EXPECT_EQ(position->embed(3).value().shape(), (Shape{3, 4}));
  EXPECT_NE(error_of([&] { position->embed(4); }).find("longer than the 3 positions"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
