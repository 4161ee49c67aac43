// Search over recurrent models: the same code as for every other family.
#include <algorithm>

#include "nunchi/decoding/search.h"
#include "nunchi/kernels/product.h"
#include "tests/decoding/recomputation.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

using SmallRnn = SearchedModel<Rnn>;

TEST(RnnDecoding, AStateStartsOverWithAnotherSource) {
  for (const RnnConfig& config : all_small_rnns()) {
    SmallRnn s(config);
    const std::vector<Tokens> first = with_end(sentences_of({9, 7}, 37, 3)),
                              second = with_end(sentences_of({4, 9}, 37, 4)),
                              longer = with_end(sentences_of({4, 50}, 37, 5));
    const TokenBatch sources = s.batch(first), others = s.batch(second),
                     long_ones = s.batch(longer);
    const auto tensor = [&](const std::vector<std::int32_t>& values) {
      return from_host(s.context, values, {static_cast<std::int64_t>(values.size())});
    };
    const auto say = [&](SequenceModel::State& state, std::int32_t token, const Tensor& parents) {
      return to_host<float>(s.model->step(state, {.hypotheses = 2,
                                                  .tokens = 2,
                                                  .ids = tensor({token, token}),
                                                  .parents = parents,
                                                  .sentences = tensor({0, 1})}));
    };
    const auto fresh = s.model->start(others), used = s.model->start(sources);
    for (std::int32_t i = 0; i < 3; ++i) say(*used, i, i > 0 ? tensor({1, 0}) : Tensor());
    EXPECT_FALSE(s.model->restart(*used, long_ones));
    ASSERT_TRUE(s.model->restart(*used, others));
    for (std::int32_t i = 0; i < 4; ++i) {
      const Tensor parents = i > 0 ? tensor({0, 1}) : Tensor();
      EXPECT_TRUE(same_bits(say(*fresh, 5 + i, parents), say(*used, 5 + i, parents)));
    }
  }
}

TEST(RnnSearch, AWideBeamIsExhaustiveSearch) {
  constexpr std::int64_t kVocabulary = 6;
  for (const RnnConfig& config : all_small_rnns(kVocabulary)) {
    SmallRnn s(config, DType::f64);
    const std::vector<Tokens> sources = with_end(sentences_of({3, 6}, kVocabulary, 21));
    const auto found = search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                              {.beam_size = 80, .n_best = 10, .max_length = 3, .max_repeats = 0});
    for (std::size_t b = 0; b < sources.size(); ++b) {
      const auto all = all_sentences(s, sources[b], 3, 1);
      std::vector<double> scores;
      for (const auto& [tokens, score] : all) scores.push_back(score);
      std::sort(scores.rbegin(), scores.rend());
      ASSERT_EQ(found[b].size(), 10u);
      for (std::size_t i = 0; i < found[b].size(); ++i) {
        EXPECT_NEAR(found[b][i].score, scores[i], 1e-9);
        EXPECT_NEAR(all.at(found[b][i].tokens), scores[i], 1e-9);
      }
    }
  }
}

TEST(RnnSearch, ASentenceIsTheSameInEveryBatchAndPrefixesAreKept) {
  if (!kernels::rows_are_independent()) {
    GTEST_SKIP() << kernels::product_library()
                 << " does not keep a row's bits when others are added";
  }
  for (const RnnConfig& config : all_small_rnns()) {
    SmallRnn s(config);
    const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20, 3}, 37, 9));
    const std::vector<Tokens> prefixes = {{}, {4}, {7, 8, 9}, {}, {11, 12}, {3}};
    const SearchOptions options{.beam_size = 4, .n_best = 4, .max_length = 12};
    const auto together = search(
        *s.model, {.source = s.batch(sources), .prefixes = prefixes, .tokens = kTokens}, options);
    for (std::size_t b = 0; b < sources.size(); ++b) {
      const auto alone = search(*s.model,
                                {.source = s.batch({sources[b]}),
                                 .prefixes = std::span(prefixes).subspan(b, 1),
                                 .tokens = kTokens},
                                options);
      ASSERT_EQ(alone[0].size(), together[b].size());
      for (std::size_t i = 0; i < alone[0].size(); ++i) {
        EXPECT_EQ(alone[0][i].tokens, together[b][i].tokens);
        EXPECT_EQ(alone[0][i].score, together[b][i].score);
        ASSERT_GE(alone[0][i].tokens.size(), prefixes[b].size());
        EXPECT_TRUE(std::equal(prefixes[b].begin(), prefixes[b].end(), alone[0][i].tokens.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace nunchi::testing
