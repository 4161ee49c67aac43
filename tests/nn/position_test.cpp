#include "nunchi/nn/position/alibi.h"
#include "nunchi/nn/position/rotary.h"
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
  const std::vector<float> table = to_host<float>(position.embed(context, kPositions).value());
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

TEST(Sinusoidal, EvenColumnsAreSinesAndOddColumnsCosines) {
  EXPECT_NEAR(nn::sinusoid(3, 0, 512), std::sin(3.0), 1e-15);
  EXPECT_NEAR(nn::sinusoid(3, 1, 512), std::cos(3.0), 1e-15);
  EXPECT_NEAR(nn::sinusoid(3, 510, 512), std::sin(3.0 / std::pow(10000.0, 510.0 / 512)), 1e-15);
}

TEST(Learned, RejectsASentenceLongerThanItsTable) {
  CpuContext context;
  nn::Parameters parameters;
  const auto position = nn::make_position(
      parameters, "p", {.kind = nn::PositionKind::learned, .width = 4, .maximum = 3});
  parameters.allocate(context, {});
  EXPECT_EQ(position->embed(context, 3).value().shape(), (Shape{3, 4}));
  EXPECT_NE(error_of([&] { position->embed(context, 4); }).find("longer than the 3 positions"),
            std::string::npos);
}

// Allocated parameters for encodings that add none themselves.
struct Allocated {
  explicit Allocated(DType dtype = DType::f32) {
    parameters.add("any", {1}, nn::Init::zeros());
    parameters.allocate(context, {.dtype = dtype});
  }
  CpuContext context;
  nn::Parameters parameters;
};

TEST(Rotary, AnglesAreExactAtAHundredThousandPositions) {
  constexpr std::int64_t kWidth = 64, kPositions = 128 << 10;
  Allocated a;
  const nn::Rotary position(a.parameters, {.head_width = kWidth});
  const std::vector<float> table = to_host<float>(position.reserve(a.context, kPositions));
  double largest = 0;
  for (std::int64_t p = 0; p < kPositions; p += 997) {
    for (std::int64_t i = 0; i < kWidth / 2; ++i) {
      const long double angle = static_cast<long double>(p) *
                                std::pow(10000.0L, -2 * static_cast<long double>(i) / kWidth);
      const auto at = static_cast<std::size_t>(p * kWidth + i);
      largest =
          std::max({largest, std::fabs(table[at] - static_cast<double>(std::cos(angle))),
                    std::fabs(table[at + kWidth / 2] - static_cast<double>(std::sin(angle)))});
    }
  }
  EXPECT_LE(largest, 1e-7);
}

TEST(Rotary, RejectsHeadsOfAnOddWidth) {
  Allocated a;
  EXPECT_NE(error_of([&] {
              nn::Rotary(a.parameters, {.head_width = 5});
            }).find("the head width must be even, not 5"),
            std::string::npos);
}

TEST(Positions, AReservedTableStaysUntilALongerOneIsNeeded) {
  Allocated a;
  const nn::Sinusoidal sinusoidal(a.parameters, 8);
  const nn::Rotary rotary(a.parameters, {.head_width = 8});
  for (const nn::Position* position :
       {static_cast<const nn::Position*>(&sinusoidal), static_cast<const nn::Position*>(&rotary)}) {
    const Tensor first = position->reserve(a.context, 300);
    EXPECT_GE(first.size(0), 300);
    EXPECT_TRUE(position->reserve(a.context, first.size(0)).same_memory(first));
    const Tensor more = position->reserve(a.context, first.size(0) + 1);
    EXPECT_FALSE(more.same_memory(first));
    const std::vector<float> before = to_host<float>(first), after = to_host<float>(more);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  }
  EXPECT_FALSE(nn::Alibi(a.parameters, 4).reserve(a.context, 100).defined());
}

TEST(Alibi, HasThePapersSlopes) {
  EXPECT_EQ(nn::alibi_slopes(8), (std::vector<double>{1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32,
                                                      1.0 / 64, 1.0 / 128, 1.0 / 256}));
  EXPECT_EQ(nn::alibi_slopes(1), std::vector<double>{1.0 / 256});
  const std::vector<double> six = nn::alibi_slopes(6);
  const std::vector<double> expected = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8};
  ASSERT_EQ(six.size(), 6u);
  for (std::size_t h = 0; h < 6; ++h) EXPECT_NEAR(six[h], expected[h], 1e-15);
}

TEST(Relative, HasARowForEachBucketOrDistance) {
  const auto rows = [](const nn::RelativeOptions& relative) {
    nn::Parameters parameters;
    nn::make_position(
        parameters, "p",
        {.kind = nn::PositionKind::relative, .width = 8, .heads = 3, .relative = relative});
    EXPECT_EQ(parameters.entries().at(0).name, "p.weight");
    EXPECT_EQ(parameters.entries().at(0).shape[1], 3);
    return parameters.entries().at(0).shape[0];
  };
  using nn::RelativeKind;
  EXPECT_EQ(rows({.bidirectional = true}), 32);
  EXPECT_EQ(rows({.kind = RelativeKind::clipped, .max_distance = 16}), 17);
  EXPECT_EQ(rows({.kind = RelativeKind::clipped, .max_distance = 16, .bidirectional = true}), 33);
}

TEST(Relative, RejectsBucketsThatCannotCoverTheDistance) {
  EXPECT_NE(error_of([] {
              nn::RelativeOptions{.buckets = 32, .max_distance = 16}.check();
            }).find("32 buckets of relative positions cannot cover a distance of 16"),
            std::string::npos);
}

}  // namespace
}  // namespace nunchi::testing
