#include "nunchi/decoding/searcher.h"

#include <algorithm>
#include <cmath>

#include "nunchi/kernels/product.h"
#include "tests/decoding/recomputation.h"

namespace nunchi::testing {
namespace {

using SmallModel = SearchTestModel<Transformer>;

TEST(Greedy, TakesTheLikeliestTokenEachTime) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8}, 37, 9));
  const auto found = search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                            {.beam_size = 1, .max_length = 15, .max_repeats = 0});
  for (std::size_t b = 0; b < sources.size(); ++b) {
    Tokens expected;
    double sum = 0;
    bool ended = false;
    while (expected.size() < 15 && !ended) {
      const auto log_probs = s.log_probs_after(sources[b], expected);
      const auto best = std::max_element(log_probs.begin(), log_probs.end());
      sum += *best;
      ended = best - log_probs.begin() == kEnd;
      if (!ended) expected.push_back(static_cast<std::int32_t>(best - log_probs.begin()));
    }
    ASSERT_EQ(found[b].size(), 1u);
    EXPECT_EQ(found[b][0].tokens, expected);
    EXPECT_EQ(found[b][0].ended_by_eos, ended);
    EXPECT_NEAR(found[b][0].log_probability, sum, 1e-4);
    EXPECT_EQ(found[b][0].token_scores.size(), expected.size() + (ended ? 1 : 0));
  }
}

TEST(Beam, AWideBeamIsExhaustiveSearch) {
  constexpr std::int64_t kVocabulary = 6;
  SmallModel s(small_config(kVocabulary), DType::f64);
  const std::vector<Tokens> sources = with_end(sentences_of({3, 6}, kVocabulary, 21));
  for (const double normalize : {0.0, 0.6, 1.0}) {
    const auto found = search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                              {.beam_size = 300,
                               .normalize = normalize,
                               .n_best = 20,
                               .max_length = 4,
                               .max_repeats = 0});
    for (std::size_t b = 0; b < sources.size(); ++b) {
      const auto all = all_sentences(s, sources[b], 4, normalize);
      std::vector<double> scores;
      for (const auto& [tokens, score] : all) scores.push_back(score);
      std::sort(scores.rbegin(), scores.rend());
      ASSERT_EQ(found[b].size(), 20u);
      for (std::size_t i = 0; i < found[b].size(); ++i) {
        EXPECT_NEAR(found[b][i].score, scores[i], 1e-9);
        EXPECT_NEAR(all.at(found[b][i].tokens), scores[i], 1e-9);
      }
    }
  }
}

TEST(Beam, FindsScoresAtLeastAsGoodAsGreedySearch) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20, 3}, 37, 9));
  const SearchOptions options{.normalize = 0, .max_length = 12};
  SearchOptions wide = options;
  wide.beam_size = wide.n_best = 6;
  const auto greedy = search(*s.model, {.source = s.batch(sources), .tokens = kTokens}, options);
  const auto beam = search(*s.model, {.source = s.batch(sources), .tokens = kTokens}, wide);
  for (std::size_t b = 0; b < sources.size(); ++b) {
    EXPECT_GE(beam[b][0].score, greedy[b][0].score - 1e-5);
    for (std::size_t i = 1; i < beam[b].size(); ++i) {
      EXPECT_LE(beam[b][i].score, beam[b][i - 1].score);
      EXPECT_NE(beam[b][i].tokens, beam[b][i - 1].tokens);
    }
  }
}

bool same(const Hypothesis& a, const Hypothesis& b) {
  return a.tokens == b.tokens && same_bits(a.token_scores, b.token_scores) && a.score == b.score;
}

TEST(Search, ASentenceIsTheSameInEveryBatch) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallModel s(small_config());
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < 70; ++i) lengths.push_back(1 + i * 7 % 23);
  const std::vector<Tokens> sources = with_end(sentences_of(lengths, 37, 31));
  std::vector<SearchOptions> all_options(3, {.max_length = 20});
  all_options[1].beam_size = 5;
  all_options[2] = {.n_best = 3, .sample = true, .top_k = 12, .top_p = 0.9, .max_length = 20};
  for (const SearchOptions& options : all_options) {
    const auto together =
        search(*s.model, {.source = s.batch(sources), .tokens = kTokens}, options);
    for (const std::size_t size : {1u, 2u, 7u, 64u}) {
      for (std::size_t begin = 0; begin < sources.size(); begin += size) {
        std::vector<Tokens> batch;
        std::vector<std::int64_t> numbers;
        for (std::size_t i = std::min(begin + size, sources.size()); i-- > begin;) {  // backwards
          batch.push_back(sources[i]);
          numbers.push_back(static_cast<std::int64_t>(i));
        }
        const auto found = search(
            *s.model, {.source = s.batch(batch), .numbers = numbers, .tokens = kTokens}, options);
        for (std::size_t i = 0; i < batch.size(); ++i) {
          const auto& expected = together[static_cast<std::size_t>(numbers[i])];
          ASSERT_EQ(found[i].size(), expected.size());
          for (std::size_t j = 0; j < expected.size(); ++j) {
            EXPECT_TRUE(same(found[i][j], expected[j])) << "sentence " << numbers[i];
          }
        }
      }
    }
  }
}

TEST(Search, ASecondSearchAllocatesNothingFromTheSystem) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20, 3}, 37, 9));
  const SearchOptions options{.beam_size = 4, .min_length = 40, .max_length = 80};
  search(*s.model, {.source = s.batch(sources), .tokens = kTokens}, options);
  const auto requests = s.context.arena().system_requests();
  const auto in_use = s.context.arena().in_use();
  search(*s.model, {.source = s.batch(sources), .tokens = kTokens}, options);
  EXPECT_EQ(s.context.arena().system_requests(), requests);
  EXPECT_EQ(s.context.arena().in_use(), in_use);
}

TEST(Search, RespectsItsLengthLimits) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20, 3}, 37, 9));
  const auto lengths = [&](const SearchOptions& options) {
    std::vector<std::size_t> found;
    for (const Hypotheses& each :
         search(*s.model, {.source = s.batch(sources), .tokens = kTokens}, options)) {
      for (const Hypothesis& hypothesis : each) found.push_back(hypothesis.tokens.size());
    }
    return found;
  };
  for (const int beam : {1, 4}) {
    for (const std::size_t n : lengths({.beam_size = beam, .n_best = beam, .max_length = 3})) {
      EXPECT_LE(n, 3u);
    }
    for (const std::size_t n :
         lengths({.beam_size = beam, .n_best = beam, .min_length = 25, .max_length = 25})) {
      EXPECT_EQ(n, 25u);
    }
    const auto found = search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                              {.beam_size = beam, .max_length = 1000, .max_repeats = 0});
    for (std::size_t b = 0; b < sources.size(); ++b) {
      EXPECT_LE(found[b][0].tokens.size(), 3 * sources[b].size() + 20);
    }
  }
}

TEST(Search, DoesNotRepeatForbiddenNgrams) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1}, 37, 9));
  for (const int n : {1, 2, 3}) {
    const auto found = search(
        *s.model, {.source = s.batch(sources), .tokens = kTokens},
        {.beam_size = 3, .n_best = 3, .min_length = 20, .max_length = 20, .no_repeat_ngram = n});
    for (const Hypotheses& each : found) {
      for (const Hypothesis& hypothesis : each) {
        std::map<Tokens, int> seen;
        for (std::size_t i = 0; i + static_cast<std::size_t>(n) <= hypothesis.tokens.size(); ++i) {
          const auto at = hypothesis.tokens.begin() + static_cast<std::ptrdiff_t>(i);
          EXPECT_EQ(++seen[Tokens(at, at + n)], 1);
        }
      }
    }
  }
}

TEST(Search, LimitsHowOftenATokenRepeats) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({20}, 37, 9));
  const auto longest_run = [&](int max_repeats) {
    const auto found = search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                              {.min_length = 60, .max_length = 60, .max_repeats = max_repeats});
    std::size_t longest = 0, run = 0;
    const Tokens& tokens = found[0][0].tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      run = i > 0 && tokens[i] == tokens[i - 1] ? run + 1 : 1;
      longest = std::max(longest, run);
    }
    return longest;
  };
  EXPECT_GT(longest_run(0), 3u);  // this model does repeat itself
  EXPECT_LE(longest_run(3), 3u);
}

TEST(Search, HypothesesBeginWithThePrefix) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1}, 37, 9));
  const std::vector<Tokens> prefixes{{7, 8, 9}, {}, {30}};
  const SearchOptions options{.beam_size = 3, .max_length = 12};
  const auto found = search(
      *s.model, {.source = s.batch(sources), .prefixes = prefixes, .tokens = kTokens}, options);
  for (std::size_t b = 0; b < sources.size(); ++b) {
    ASSERT_GE(found[b][0].tokens.size(), prefixes[b].size());
    EXPECT_TRUE(std::equal(prefixes[b].begin(), prefixes[b].end(), found[b][0].tokens.begin()));
    const std::vector<Tokens> source{sources[b]}, prefix{prefixes[b]};
    const auto alone = search(
        *s.model, {.source = s.batch(source), .prefixes = prefix, .tokens = kTokens}, options);
    EXPECT_EQ(alone[0][0].tokens, found[b][0].tokens);
  }
  EXPECT_EQ(
      found[1][0].tokens,
      search(*s.model, {.source = s.batch({sources[1]}), .tokens = kTokens}, options)[0][0].tokens);
}

TEST(Sampling, FollowsTheDistribution) {
  constexpr std::int64_t kVocabulary = 12;
  SmallModel s(small_config(kVocabulary));
  const std::vector<Tokens> sources = with_end(sentences_of({6}, kVocabulary, 2));
  std::vector<double> expected = s.logits_after(sources[0], {});
  expected[kBegin] = -INFINITY;
  // The first token of many samples; temperature, top-k and top-p are applied by hand.
  struct Case {
    double temperature;
    std::int64_t top_k;
    double top_p;
  };
  for (const Case& c :
       {Case{1, 0, 1}, Case{0.5, 0, 1}, Case{2, 5, 1}, Case{1, 0, 0.7}, Case{1, 6, 0.8}}) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      order.emplace_back(std::exp(expected[i] / c.temperature), i);
    }
    std::sort(order.rbegin(), order.rend());
    if (c.top_k > 0) order.resize(static_cast<std::size_t>(c.top_k));
    const auto total = [&] {
      double sum = 0;
      for (const auto& [weight, token] : order) sum += weight;
      return sum;
    };
    double sum = 0;
    const double kept_weight = c.top_p * total();
    for (std::size_t i = 0; i < order.size() && c.top_p < 1; ++i) {
      sum += order[i].first;
      if (sum >= kept_weight) order.resize(i + 1);
    }
    std::map<std::int32_t, double> probability;
    for (const auto& [weight, token] : order) {
      probability[static_cast<std::int32_t>(token)] = weight / total();
    }

    constexpr int kSamples = 20000, kSamplesPerSearch = 2000;
    std::map<std::int32_t, int> seen;
    for (int i = 0; i < kSamples / kSamplesPerSearch; ++i) {
      const auto found = search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                                {.n_best = kSamplesPerSearch,
                                 .sample = true,
                                 .top_k = c.top_k,
                                 .top_p = c.top_p,
                                 .temperature = c.temperature,
                                 .seed = static_cast<std::uint64_t>(i),
                                 .max_length = 1});
      for (const Hypothesis& hypothesis : found[0]) {
        ++seen[hypothesis.tokens.empty() ? kEnd : hypothesis.tokens[0]];
      }
    }
    double chi_squared = 0;
    for (const auto& [token, token_probability] : probability) {
      const double mean = token_probability * kSamples;
      if (mean < 1e-9) continue;
      chi_squared += (seen[token] - mean) * (seen[token] - mean) / mean;
    }
    for (const auto& [token, count] : seen) {
      EXPECT_TRUE(count == 0 || probability.contains(token)) << "token " << token << " was cut";
    }
    // With eleven degrees of freedom, one value in a million is above 49.
    EXPECT_LT(chi_squared, 49);
  }
}

TEST(Sampling, TheSeedDeterminesTheSamples) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({6, 4}, 37, 2));
  const auto sample = [&](std::uint64_t seed) {
    return search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                  {.sample = true, .seed = seed, .max_length = 20})[0][0]
        .tokens;
  };
  EXPECT_EQ(sample(1), sample(1));
  EXPECT_NE(sample(1), sample(2));
}

TEST(Search, ErrorsNameTheInvalidOption) {
  const auto complaint = [](const SearchOptions& options) {
    return error_of([&] { options.check(); });
  };
  EXPECT_NE(complaint({.beam_size = 0}).find("beam size"), std::string::npos);
  EXPECT_NE(complaint({.beam_size = 2, .n_best = 3}).find("n-best"), std::string::npos);
  EXPECT_NE(complaint({.beam_size = 2, .sample = true}).find("exclude"), std::string::npos);
  EXPECT_NE(complaint({.temperature = NAN}).find("temperature"), std::string::npos);
  EXPECT_NE(complaint({.top_p = 0}).find("top-p"), std::string::npos);
  EXPECT_NE(complaint({.min_length = 9, .max_length = 8}).find("minimum"), std::string::npos);
}

TEST(Search, NanScoresAreAnError) {
  SmallModel s(small_config());
  fill(s.model->parameters().find("shared.embedding.weight")->variable.value(), NAN);
  s.model->parameters().changed();
  const std::vector<Tokens> sources = with_end(sentences_of({6}, 37, 2));
  for (const int beam : {1, 3}) {
    EXPECT_NE(error_of([&] {
                search(*s.model, {.source = s.batch(sources), .tokens = kTokens},
                       {.beam_size = beam});
              }).find("not numbers"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace nunchi::testing
