#include "nunchi/inference/scorer.h"

#include <cmath>
#include <numeric>

#include "nunchi/kernels/product.h"
#include "tests/inference/small_translation.h"

namespace nunchi::testing {
namespace {

// The search sums log-probabilities token by token; the scorer scores a whole sentence in one pass.
// Both give the same values, even where the search banned tokens.
void expect_scores_of(const SearchOptions& search) {
  SmallTranslation s(letter_tokenizer());
  Translator translator = s.translator({.search = search});
  const Scorer scorer(s.context, *s.model, s.tokenizers, {});
  // A common prefix makes it likely that decoded text is tokenised into the same pieces.
  const std::string prefix = "fox a";
  const auto prefix_length =
      static_cast<std::ptrdiff_t>(s.tokenizers.target().encode(prefix).size());
  std::vector<SourceLine> lines = lines_of({"a dog", "the fox sees the dog", "zebra", "a", "how"});
  for (SourceLine& line : lines) line.prefix = prefix;
  const auto found = translator.translate(lines);
  std::vector<TextPair> pairs;
  std::vector<Translation> translations;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    for (const Translation& translation : found[line]) {
      pairs.push_back({lines[line].text, translation.text});
      translations.push_back(translation);
    }
  }
  const std::vector<PairScore> scores = scorer.score(pairs);
  ASSERT_EQ(scores.size(), pairs.size());
  int compared = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (scores[i].pieces != translations[i].pieces) continue;
    ++compared;
    const std::vector<float> scored(scores[i].token_scores.begin() + prefix_length,
                                    scores[i].token_scores.end());
    const std::vector<float> searched(translations[i].token_scores.begin() + prefix_length,
                                      translations[i].token_scores.end());
    EXPECT_LT(largest_difference(scored, searched), 1e-4) << pairs[i].target;
    EXPECT_NEAR(std::accumulate(scored.begin(), scored.end(), 0.0), translations[i].log_probability,
                1e-4)
        << pairs[i].target;
  }
  EXPECT_GE(compared, 5) << "of " << pairs.size();
}

TEST(Scorer, GivesTheScoresOfTheSearch) {
  expect_scores_of({.beam_size = 30, .n_best = 30, .max_length = 9});
  expect_scores_of({.n_best = 60, .sample = true, .max_length = 12});
  expect_scores_of({.n_best = 60, .sample = true, .temperature = 2, .max_length = 12});
}

TEST(Scorer, GivesTheScoresOfASearchWithBans) {
  expect_scores_of({.beam_size = 30, .n_best = 30, .max_length = 9, .no_repeat_ngram = 1});
  expect_scores_of({.n_best = 60,
                    .sample = true,
                    .min_length = 7,
                    .max_length = 12,
                    .no_repeat_ngram = 1,
                    .max_repeats = 1});
}

std::vector<TextPair> some_pairs() {
  std::vector<TextPair> pairs;
  const std::vector<std::string> texts = some_texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    pairs.push_back({texts[i], texts[(i * 4 + 1) % texts.size()]});
  }
  return pairs;
}

TEST(Scorer, APairsScoreIsIndependentOfOtherPairs) {
  SmallTranslation s;
  const auto pairs = some_pairs();
  const auto together = Scorer(s.context, *s.model, s.tokenizers, {}).score(pairs);
  ASSERT_EQ(together.size(), pairs.size());
  for (const std::int64_t batch_tokens : {1, 30}) {
    const auto separate =
        Scorer(s.context, *s.model, s.tokenizers, {.batch_tokens = batch_tokens}).score(pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(separate[i].pieces, together[i].pieces);
      if (kernels::rows_are_independent()) {
        EXPECT_TRUE(same_bits(separate[i].token_scores, together[i].token_scores)) << "pair " << i;
      } else {
        EXPECT_NEAR(separate[i].log_probability, together[i].log_probability, 1e-3);
      }
    }
  }
}

TEST(Scorer, ReturnsThePieceAndTheScoreOfEachToken) {
  SmallTranslation s;
  for (const PairScore& score : Scorer(s.context, *s.model, s.tokenizers, {}).score(some_pairs())) {
    ASSERT_EQ(score.pieces.size(), score.token_scores.size());
    EXPECT_EQ(score.pieces.back(), "</s>");
    EXPECT_NEAR(std::accumulate(score.token_scores.begin(), score.token_scores.end(), 0.0),
                score.log_probability, 1e-4);
    for (const float each : score.token_scores) EXPECT_LT(each, 0);
    EXPECT_FALSE(score.cut);
  }
}

TEST(Scorer, EmptySidesHaveOnlyTheirEndToken) {
  SmallTranslation s;
  const auto scores = Scorer(s.context, *s.model, s.tokenizers, {})
                          .score(std::vector<TextPair>{{"", ""}, {"a dog", ""}, {"", "a dog"}});
  EXPECT_EQ(scores[0].pieces, (std::vector<std::string>{"</s>"}));
  EXPECT_EQ(scores[1].pieces, (std::vector<std::string>{"</s>"}));
  EXPECT_NE(scores[0].log_probability, scores[1].log_probability);
  EXPECT_GT(scores[2].pieces.size(), 1u);
  EXPECT_TRUE(Scorer(s.context, *s.model, s.tokenizers, {}).score({}).empty());
}

TEST(Scorer, MarksPairsThatWereCut) {
  SmallTranslation s;
  const std::string text = "the lazy dog sleeps under the old tree";
  const auto scores = Scorer(s.context, *s.model, s.tokenizers, {.max_length = 6})
                          .score(std::vector<TextPair>{{text, "a"}, {"a", text}, {"a", "a"}});
  EXPECT_TRUE(scores[0].cut);
  EXPECT_TRUE(scores[1].cut);
  EXPECT_FALSE(scores[2].cut);
  EXPECT_EQ(scores[1].pieces.size(), 6u);
}

TEST(Scorer, RefusesTokenizersOfAnotherModel) {
  SmallTranslation s;
  const Tokenizers other(letter_tokenizer());
  EXPECT_NE(
      error_of([&] { Scorer(s.context, *s.model, other, {}); }).find("do not belong together"),
      std::string::npos);
}

TEST(ScoreTotals, SumsScoresOverAllCalls) {
  const PairScore whole{.log_probability = -3, .pieces = {"a", "b", "</s>"}};
  const PairScore cut{.log_probability = -1, .pieces = {"</s>"}, .cut = true};
  ScoreTotals totals;
  totals.add(std::vector{whole, cut});
  totals.add(std::vector{whole});
  EXPECT_EQ(totals.count, 3);
  EXPECT_EQ(totals.cut, 1);
  EXPECT_EQ(totals.tokens, 7);
  EXPECT_EQ(totals.log_probability, -7);
  EXPECT_DOUBLE_EQ(totals.perplexity(), std::exp(1.0));
}

}  // namespace
}  // namespace nunchi::testing
