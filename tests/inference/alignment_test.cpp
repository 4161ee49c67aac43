#include "nunchi/inference/alignment.h"

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
    const auto weights =
        cross_attention(*model, make_token_batch(context, sources, 37), targets, kTokens);
    ASSERT_EQ(weights.size(), 3u);
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
  EXPECT_LT(largest_difference(second[0], both[1]), 1e-5);
}

TEST(MergedIntoWords, SumsColumnsAndAveragesRows) {
  const AttentionMatrix words = merged_into_words({.sources = {"▁do", "g", "▁runs", "</s>"},
                                                   .targets = {"▁개", "가", "</s>"},
                                                   .weights = {0.1f, 0.2f, 0.3f, 0.4f,    //
                                                               0.5f, 0.25f, 0.25f, 0.0f,  //
                                                               0.0f, 0.0f, 0.0f, 1.0f},
                                                   .last_source = LastPiece::end_token,
                                                   .last_target = LastPiece::end_token});
  EXPECT_EQ(words.sources, (std::vector<std::string>{"dog", "runs", "</s>"}));
  EXPECT_EQ(words.targets, (std::vector<std::string>{"개가", "</s>"}));
  const std::vector<double> expected = {(0.3 + 0.75) / 2, (0.3 + 0.25) / 2, 0.2, 0, 0, 1};
  EXPECT_LT(largest_difference(words.weights, expected), 1e-6);
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
