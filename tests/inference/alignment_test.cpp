#include "nunchi/inference/alignment.h"

#include <cmath>
#include <numeric>

#include "nunchi/base/error.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

TEST(CrossAttention, HasARowForEachTargetTokenAndTheEnd) {
  CpuContext context({.threads = 1});
  for (const int layers : {1, 3}) {
    TransformerConfig config = small_config();
    config.decoder_layers = layers;
    const auto model = make_small<Transformer>(context, config);
    const std::vector<Tokens> sources = sentences_of({5, 1, 9}, 37, 3);
    const std::vector<Tokens> targets = sentences_of({2, 7, 0}, 37, 4);
    const auto attention =
        cross_attention(*model, make_token_batch(context, sources, 37), targets, kTokens);
    ASSERT_EQ(attention.size(), 3u);
    std::vector<std::vector<float>> weights;
    for (const CrossAttention& pair : attention) weights.push_back(alignment_weights(pair));
    for (std::size_t b = 0; b < 3; ++b) {
      ASSERT_EQ(weights[b].size(), sources[b].size() * (targets[b].size() + 1));
      for (std::size_t t = 0; t <= targets[b].size(); ++t) {
        const auto row = weights[b].begin() + static_cast<std::ptrdiff_t>(t * sources[b].size());
        EXPECT_NEAR(std::accumulate(row, row + static_cast<std::ptrdiff_t>(sources[b].size()), 0.0),
                    1, 1e-5);
      }
    }
    // The trace is detached again.
    EXPECT_EQ(context.trace(), nullptr);
  }
}

TEST(CrossAttention, OfAPairIsIndependentOfOtherPairs) {
  CpuContext context({.threads = 1});
  const auto model = make_small<Transformer>(context, small_config());
  const std::vector<Tokens> sources = sentences_of({5, 3}, 37, 3);
  const std::vector<Tokens> targets = sentences_of({4, 6}, 37, 4);
  const auto both =
      cross_attention(*model, make_token_batch(context, sources, 37), targets, kTokens);
  const auto second =
      cross_attention(*model, make_token_batch(context, std::span(sources).subspan(1), 37),
                      std::span(targets).subspan(1), kTokens);
  EXPECT_LT(largest_difference(second[0].weights, both[1].weights), 1e-5);
}

// Two layers with two heads, three target tokens and two source tokens; all weights differ.
CrossAttention counted() {
  CrossAttention attention{.layers = 2, .heads = 2, .targets = 3, .sources = 2};
  for (int i = 0; i < 24; ++i) attention.weights.push_back(static_cast<float>(i));
  return attention;
}

TEST(AlignmentWeights, AreTheMeanOfTheChosenHeads) {
  EXPECT_EQ(alignment_weights(counted(), {{1, 0}}), (std::vector<float>{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(alignment_weights(counted(), {{0, 1}, {1, 1}}),
            (std::vector<float>{12, 13, 14, 15, 16, 17}));
  // By default all heads of the last two layers.
  EXPECT_EQ(alignment_weights(counted()), (std::vector<float>{9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(default_alignment_heads(1, 2), (AlignmentHeads{{0, 0}, {0, 1}}));
  EXPECT_EQ(default_alignment_heads(6, 1), (AlignmentHeads{{4, 0}, {5, 0}}));
}

TEST(AlignmentWeights, AHeadThatTheModelLacksIsAnError) {
  for (const AlignmentHead head : {AlignmentHead{2, 0}, {0, 2}, {-1, 0}}) {
    const std::string error = error_of([&] { alignment_weights(counted(), {{0, 0}, head}); });
    EXPECT_NE(error.find("has 2 layers and 2 heads"), std::string::npos) << error;
  }
}

TEST(MergedIntoWords, SumsColumnsAndTakesTheRowThatDecides) {
  const AttentionMatrix words = merged_into_words({.sources = {"▁do", "g", "▁runs", "</s>"},
                                                   .targets = {"▁개", "가", "</s>"},
                                                   .weights = {0.1f, 0.2f, 0.3f, 0.4f,    //
                                                               0.5f, 0.25f, 0.25f, 0.0f,  //
                                                               0.0f, 0.0f, 0.0f, 1.0f},
                                                   .last_source = LastPiece::end_token,
                                                   .last_target = LastPiece::end_token});
  EXPECT_EQ(words.sources, (std::vector<std::string>{"dog", "runs", "</s>"}));
  EXPECT_EQ(words.targets, (std::vector<std::string>{"개가", "</s>"}));
  const std::vector<double> expected = {0.3, 0.3, 0.4, 0, 0, 1};
  EXPECT_LT(largest_difference(words.weights, expected), 1e-6);
}

TEST(MergedIntoWords, TheRowOfAWordIsThatOfItsFirstLetterOrDigit) {
  const auto row_of = [](const std::vector<std::string>& pieces) {
    AttentionMatrix matrix{.sources = {"a", "▁b"}, .targets = pieces};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      matrix.weights.push_back(0.1f * static_cast<float>(i));
      matrix.weights.push_back(1 - matrix.weights.back());
    }
    return std::lround(10 * merged_into_words(matrix).weights[0]);
  };
  EXPECT_EQ(row_of({"▁Seoul", ","}), 0);
  EXPECT_EQ(row_of({"▁", "3", ":", "2", "0"}), 1);
  EXPECT_EQ(row_of({"▁“", "(", "東", "京"}), 2);
  EXPECT_EQ(row_of({"▁", "<0xEA>"}), 1);
  EXPECT_EQ(row_of({"▁", "...", "!"}), 0);  // only punctuation: the first piece
}

TEST(MergedIntoWords, IsEmptyForEmptyInput) { EXPECT_TRUE(merged_into_words({}).weights.empty()); }

TEST(MergedIntoWords, NeedsAWeightForEachPair) {
  EXPECT_EQ(error_of([] {
              merged_into_words({.sources = {"a", "b"}, .targets = {"c"}, .weights = {1}});
            }),
            "attention: 1 weights for 1 targets and 2 sources.");
}

TEST(HardAlignment, TakesTheStrongestSourceOfEachWord) {
  // End tokens are left out on both sides, even where they have the largest weight.
  EXPECT_EQ(hard_alignment({.sources = {"dog", "runs", "<end>"},
                            .targets = {"개가", "달린다", "</s>"},
                            .weights = {0.2f, 0.1f, 0.7f,  //
                                        0.1f, 0.6f, 0.3f,  //
                                        0.9f, 0.1f, 0.0f},
                            .last_source = LastPiece::end_token,
                            .last_target = LastPiece::end_token}),
            (Pairs{{0, 0}, {1, 1}}));
  // A translation that the length limit ended has no end token; its last word may look like one.
  EXPECT_EQ(hard_alignment({.sources = {"a", "b", "</s>"},
                            .targets = {"</s>"},
                            .weights = {0.1f, 0.5f, 0.4f},
                            .last_source = LastPiece::end_token}),
            (Pairs{{1, 0}}));
}

TEST(HardAlignment, IsEmptyForEmptyInput) {
  EXPECT_TRUE(hard_alignment({}).empty());
  EXPECT_TRUE(hard_alignment({.sources = {"</s>"},
                              .targets = {"a", "</s>"},
                              .weights = {1, 1},
                              .last_source = LastPiece::end_token,
                              .last_target = LastPiece::end_token})
                  .empty());
}

}  // namespace
}  // namespace nunchi::testing
