#include "nunchi/training/validation_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nunchi::testing {
namespace {

using Metric = ValidationMetric;
using Best = std::vector<StepScore>;

TEST(ValidationScores, OnlyScoresThatAreSetAreDisplayedAndLogged) {
  const ValidationScores plain{.loss = 2.5};
  EXPECT_EQ(to_text(plain), "validation loss 2.5000");
  ASSERT_EQ(log_values(plain).size(), 2u);
  EXPECT_EQ(log_values(plain)[1].first, "validation/perplexity");
  EXPECT_DOUBLE_EQ(log_values(plain)[1].second, std::exp(2.5));
  const ValidationScores all{.loss = 1, .bleu = 30.123, .chrf = 50, .accuracy = 0.5};
  EXPECT_EQ(to_text(all), "validation loss 1.0000, BLEU 30.12, chrF 50.00, accuracy 50.00 %");
  EXPECT_EQ(log_values(all).size(), 5u);
}

TEST(ValidationScores, TheMetricSelectsTheScore) {
  const ValidationScores all{.loss = 1, .bleu = 2, .chrf = 3, .accuracy = 4};
  EXPECT_EQ(score_of(all, Metric::loss), 1);
  EXPECT_EQ(score_of(all, Metric::bleu), 2);
  EXPECT_EQ(score_of(all, Metric::chrf), 3);
  EXPECT_EQ(score_of(all, Metric::accuracy), 4);
}

TEST(BestScores, AreSortedWithTheEarlierOfEqualScoresFirst) {
  TrainerState state;
  const auto add = [&](std::int64_t step, double score) {
    state.step = step;
    return add_score(state, score, Metric::bleu, 3);
  };
  EXPECT_TRUE(add(1, 10));
  EXPECT_TRUE(add(2, 20));
  EXPECT_FALSE(add(3, 20));
  EXPECT_FALSE(add(4, 5));
  EXPECT_EQ(state.best, (Best{{2, 20}, {3, 20}, {1, 10}}));
  EXPECT_EQ(state.validations_without_gain, 2);
  EXPECT_TRUE(add(5, 21));
  EXPECT_EQ(state.validations_without_gain, 0);
  EXPECT_EQ(state.best.front(), (StepScore{5, 21}));
}

TEST(BestScores, LowerLossesAreBetterAndNonFiniteOnesAreIgnored) {
  TrainerState state;
  const auto add = [&](std::int64_t step, double score) {
    state.step = step;
    return add_score(state, score, Metric::loss, 5);
  };
  EXPECT_FALSE(add(1, NAN));
  EXPECT_TRUE(add(2, 3));
  EXPECT_FALSE(add(3, INFINITY));
  EXPECT_TRUE(add(4, 2));
  EXPECT_EQ(state.best, (Best{{4, 2}, {2, 3}}));
}

}  // namespace
}  // namespace nunchi::testing
