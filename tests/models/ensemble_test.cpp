// Ensembles of encoder-decoders, through the search.
#include "nunchi/models/ensemble.h"

#include "nunchi/base/error.h"
#include "nunchi/kernels/product.h"
#include "tests/decoding/random_admission.h"
#include "tests/decoding/recomputation.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 37;

// A Transformer, a larger one with other weights, and an RNN, on one context.
struct Members {
  CpuContext context{{.threads = 2}};
  std::unique_ptr<Transformer> first = make_small<Transformer>(context, small_config());
  std::unique_ptr<Transformer> second = make_small<Transformer>(context, wider_config());
  std::unique_ptr<Rnn> rnn =
      make_small<Rnn>(context, small_rnn(CellKind::lstm, RnnAttention::additive));

  static TransformerConfig wider_config() {
    TransformerConfig config = small_config();
    config.width = 48;
    config.decoder_layers = 3;
    return config;
  }
  TokenBatch batch(const std::vector<Tokens>& sources) {
    return make_token_batch(context, sources, kVocabulary);
  }
};

// Searches of every kind.
std::vector<SearchOptions> all_searches() {
  return {{.max_length = 15},
          {.beam_size = 4, .n_best = 4, .max_length = 15, .no_repeat_ngram = 2},
          {.beam_size = 3, .n_best = 2, .min_length = 6, .max_length = 9},
          {.n_best = 3, .sample = true, .top_k = 12, .top_p = 0.9, .seed = 5, .max_length = 15}};
}

void expect_near(const std::vector<Hypotheses>& found, const std::vector<Hypotheses>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t b = 0; b < found.size(); ++b) {
    ASSERT_EQ(found[b].size(), expected[b].size());
    for (std::size_t i = 0; i < found[b].size(); ++i) {
      EXPECT_EQ(found[b][i].tokens, expected[b][i].tokens) << "sentence " << b;
      EXPECT_NEAR(found[b][i].score, expected[b][i].score, 1e-4);
      EXPECT_LT(largest_difference(found[b][i].token_scores, expected[b][i].token_scores), 1e-4);
    }
  }
}

TEST(Ensemble, OfAModelWithItselfFindsWhatTheModelFinds) {
  Members m;
  const EnsembleModel twice({m.first.get(), m.first.get()});
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20}, kVocabulary, 9));
  const std::vector<Tokens> prefixes{{}, {7, 8}, {}, {9}, {}};
  for (const SearchOptions& options : all_searches()) {
    const SearchInput input{.source = m.batch(sources), .prefixes = prefixes, .tokens = kTokens};
    expect_near(search(twice, input, options), search(*m.first, input, options));
  }
}

TEST(Ensemble, FindsTheSameWhateverTheOrderOfItsMembers) {
  Members m;
  const EnsembleModel forwards({m.first.get(), m.second.get(), m.rnn.get()});
  const EnsembleModel backwards({m.rnn.get(), m.second.get(), m.first.get()});
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20}, kVocabulary, 9));
  for (const SearchOptions& options : all_searches()) {
    const SearchInput input{.source = m.batch(sources), .tokens = kTokens};
    expect_near(search(backwards, input, options), search(forwards, input, options));
  }
}

// Greedy search with probabilities that are computed from the whole prefix by each member.
TEST(Ensemble, TakesTheTokenWithTheHighestMeanProbability) {
  SearchTestModel<Transformer> a(small_config());
  SearchTestModel<Rnn> b(small_rnn(CellKind::gru, RnnAttention::dot));
  const EnsembleModel both({a.model.get(), b.model.get()});
  const std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1}, kVocabulary, 9));
  const auto found = search(both, {.source = a.batch(sources), .tokens = kTokens},
                            {.max_length = 12, .max_repeats = 0});
  int differs = 0;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    Tokens expected;
    double sum = 0;
    bool ended = false;
    while (expected.size() < 12 && !ended) {
      const auto of_a = a.log_probs_after(sources[s], expected),
                 of_b = b.log_probs_after(sources[s], expected);
      std::vector<double> mean;
      for (std::size_t i = 0; i < of_a.size(); ++i) {
        mean.push_back(std::log((std::exp(of_a[i]) + std::exp(of_b[i])) / 2));
      }
      const auto best = std::ranges::max_element(mean);
      differs += *best < *std::ranges::max_element(of_a) - 0.01 ? 1 : 0;
      sum += *best;
      ended = best - mean.begin() == kEnd;
      if (!ended) expected.push_back(static_cast<std::int32_t>(best - mean.begin()));
    }
    EXPECT_EQ(found[s][0].tokens, expected);
    EXPECT_NEAR(found[s][0].log_probability, sum, 1e-4);
  }
  EXPECT_GT(differs, 0) << "the members agree, so that the test shows nothing";
}

TEST(Ensemble, UnitsThatEnterAndLeaveAtRandomStepsGetTheSameResultsAsAlone) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  Members m;
  const EnsembleModel ensemble({m.first.get(), m.rnn.get(), m.second.get()});
  const SearchCase tested{
      .model = ensemble, .context = m.context, .source_vocabulary = kVocabulary};
  for (const int beam : {1, 3}) {
    expect_same_results_as_alone(tested, random_jobs(25, beam, true, kVocabulary), beam, 2);
  }
}

TEST(Ensemble, MembersReadTheirOwnSources) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  Members m;
  const EnsembleModel ensemble({m.first.get(), m.rnn.get()});
  const std::vector<Tokens> of_first = with_end(sentences_of({5, 12, 1, 8}, kVocabulary, 9)),
                            of_rnn = with_end(sentences_of({9, 2, 6, 8}, kVocabulary, 10));
  const auto found = [&](const std::vector<std::size_t>& lines, const SearchOptions& options) {
    std::vector<Tokens> first, second;
    for (const std::size_t line : lines) {
      first.push_back(of_first[line]);
      second.push_back(of_rnn[line]);
    }
    const Source source = make_member_sources({m.batch(first), m.batch(second)});
    return search(ensemble, {.source = source, .tokens = kTokens}, options);
  };
  for (const SearchOptions& options : all_searches()) {
    if (options.sample) continue;
    const auto together = found({0, 1, 2, 3}, options);
    for (const std::size_t line : {0u, 1u, 2u, 3u}) {
      expect_same(found({line}, options)[0], together[line], "line " + std::to_string(line));
    }
    // Another source of one member only changes the result.
    const Source swapped = make_member_sources({m.batch(of_first), m.batch(of_first)});
    const auto other = search(ensemble, {.source = swapped, .tokens = kTokens}, options);
    EXPECT_NE(other[0][0].log_probability, together[0][0].log_probability);
  }
}

TEST(Ensemble, RefusesMembersAndSourcesThatDoNotFit) {
  Members m;
  EXPECT_TRUE(says(error_of([] { EnsembleModel({}); }), "from 1 to 16 models, not 0"));
  const auto other = make_small<Transformer>(m.context, small_config(50));
  EXPECT_TRUE(says(error_of([&] {
                     EnsembleModel({m.first.get(), other.get()});
                   }),
                   "target vocabularies of 37 and 50 tokens"));
  const EnsembleModel both({m.first.get(), m.rnn.get()});
  const TokenBatch one = m.batch(with_end(sentences_of({5}, kVocabulary, 9)));
  const TokenBatch two = m.batch(with_end(sentences_of({5, 6}, kVocabulary, 9)));
  EXPECT_TRUE(says(error_of([&] { make_member_sources({one, two}); }), "1 and of 2 sentences"));
  const Source three = make_member_sources({one, one, one});
  EXPECT_TRUE(says(error_of([&] { search(both, {.source = three, .tokens = kTokens}, {}); }),
                   "an ensemble of 2 models got 3 sources"));
}

}  // namespace
}  // namespace nunchi::testing
