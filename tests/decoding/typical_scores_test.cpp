#include "nunchi/decoding/typical_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nunchi {
namespace {

TEST(TypicalScores, AreTheMedianAndTheFirstPercentile) {
  std::vector<double> scores;
  for (int i = 0; i < 500; ++i) scores.push_back(-i / 1000.0);  // -0.499 to 0
  std::shuffle(scores.begin(), scores.end(), std::mt19937(1));
  EXPECT_EQ(typical_scores(scores), (TypicalScores{.median = -0.249, .low = -0.494}));
}

TEST(TypicalScores, FewScoresSayTooLittle) {
  EXPECT_EQ(typical_scores({}), std::nullopt);
  EXPECT_EQ(typical_scores(std::vector<double>(kMinTypicalScores - 1, -0.5)), std::nullopt);
  EXPECT_TRUE(typical_scores(std::vector<double>(kMinTypicalScores, -0.5)));
}

TEST(TypicalScores, OnlyScoresClearlyBelowAreUnlikely) {
  const TypicalScores wide{.median = -0.5, .low = -1};
  for (const double usual : {0.0, -0.5, -1.0, -1.4}) EXPECT_FALSE(wide.is_unlikely(usual)) << usual;
  EXPECT_TRUE(wide.is_unlikely(-1.6));
  // Of a model that is always sure of itself, small differences say nothing.
  const TypicalScores narrow{.median = -0.001, .low = -0.002};
  EXPECT_FALSE(narrow.is_unlikely(-0.04));
  EXPECT_TRUE(narrow.is_unlikely(-0.2));
}

}  // namespace
}  // namespace nunchi
