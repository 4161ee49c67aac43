// Search with recurrent models, by the same code as for every other family.
#include <algorithm>

#include "nunchi/decoding/searcher.h"
#include "nunchi/kernels/product.h"
#include "nunchi/models/decoding_state.h"
#include "tests/decoding/recomputation.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {
namespace {

using SmallRnn = SearchTestModel<Rnn>;

// A unit that reuses the memory of earlier units gets the same bits as in a fresh state.
TEST(RnnDecoding, AUnitCanReuseTheMemoryOfOthers) {
  for (const RnnConfig& config : all_small_rnns()) {
    SmallRnn s(config);
    const Source sources = s.batch(with_end(sentences_of({9, 7}, 37, 3))),
                 other = s.batch(with_end(sentences_of({8}, 37, 4)));
    const auto tensor = [&](const std::vector<std::int32_t>& values) {
      return from_host(s.context, values, {static_cast<std::int64_t>(values.size())});
    };
    // Feeds `token` to each unit; without parents, this is the first step of the units.
    const auto step = [&](SequenceModel::State& state, std::int32_t token,
                          const std::vector<std::int32_t>& units,
                          const std::vector<std::int32_t>& parents) {
      nn::StepTokens tokens{.hypotheses = std::ssize(units),
                            .tokens = std::ssize(units),
                            .ids = tensor(std::vector<std::int32_t>(units.size(), token)),
                            .units = tensor(units),
                            .sources = tensor({0, 1})};
      if (!parents.empty()) tokens.parents = tensor(parents);
      return to_host<float>(s.model->step(state, tokens));
    };
    const auto fresh = make_source_state(*s.model, other, 8),
               used = make_source_state(*s.model, sources, 8);
    const auto parent = static_cast<std::int32_t>(used->cache.next_first_row());
    step(*used, 3, {0, 1}, {});
    step(*used, 4, {0, 1}, {parent + 1, parent});
    // Both leave. The new unit has index 1 and the memory rows of the first source.
    for (const std::int64_t unit : {0, 1}) used->cache.release(unit);
    used->cache.release_memory(0, 10);
    ASSERT_EQ(used->cache.take_memory(9), 0);
    ASSERT_TRUE(used->cache.admit(1, {.max_length = 8, .memory_begin = 0, .memory_length = 9}));
    used->cache.provide_slots(1, 8);
    used->cache.publish();
    const std::vector<std::int64_t> begin{0};
    s.model->add_sources(*used, other, begin);
    const auto used_parent = static_cast<std::int32_t>(used->cache.next_first_row()),
               fresh_parent = static_cast<std::int32_t>(fresh->cache.next_first_row());
    EXPECT_TRUE(same_bits(step(*fresh, 5, {0}, {}), step(*used, 5, {1}, {})));
    EXPECT_TRUE(
        same_bits(step(*fresh, 6, {0}, {fresh_parent}), step(*used, 6, {1}, {used_parent})));
    EXPECT_TRUE(same_bits(step(*fresh, 7, {0}, {0}), step(*used, 7, {1}, {0})));
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
