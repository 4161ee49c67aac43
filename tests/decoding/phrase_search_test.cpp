// Searches for targets that must contain phrases.
#include <algorithm>

#include "nunchi/kernels/product.h"
#include "tests/decoding/random_admission.h"
#include "tests/decoding/recomputation.h"

namespace nunchi::testing {
namespace {

constexpr std::int64_t kVocabulary = 37;
using SmallModel = SearchTestModel<Transformer>;

bool contains(const Tokens& tokens, const Tokens& phrase) {
  return std::search(tokens.begin(), tokens.end(), phrase.begin(), phrase.end()) != tokens.end();
}

struct PhraseCase {
  std::vector<Tokens> sources = with_end(sentences_of({5, 12, 1, 8, 20, 3, 7, 9}, kVocabulary, 9));
  std::vector<RequiredPhrases> phrases;

  PhraseCase() {
    for (std::size_t b = 0; b < sources.size(); ++b) {
      RequiredPhrases& of_sentence = phrases.emplace_back();
      for (std::size_t i = 0; i < b % 4; ++i) {
        const auto length = static_cast<std::int32_t>(1 + (b + i) % 3);
        Tokens tokens = sentences_of({length}, 30, 70 + 10 * b + i)[0];
        for (std::int32_t& token : tokens) token += 5;  // no special tokens
        of_sentence.push_back({{tokens}});
      }
    }
  }
  Source source(SmallModel& s, std::span<const std::size_t> lines) const {
    std::vector<Tokens> some;
    for (const std::size_t line : lines) some.push_back(sources[line]);
    return s.batch(some);
  }
};

TEST(PhraseSearch, EveryHypothesisContainsItsPhrases) {
  SmallModel s(small_config());
  const PhraseCase c;
  for (const int beam : {2, 3, 8}) {
    for (const std::int64_t max_length : {1, 9, 30}) {
      const auto found =
          search(*s.model, {.source = s.batch(c.sources), .phrases = c.phrases, .tokens = kTokens},
                 {.beam_size = beam, .n_best = beam, .max_length = max_length});
      for (std::size_t b = 0; b < found.size(); ++b) {
        ASSERT_FALSE(found[b].empty());
        for (const Hypothesis& hypothesis : found[b]) {
          for (const RequiredPhrase& phrase : c.phrases[b]) {
            EXPECT_TRUE(contains(hypothesis.tokens, phrase.forms[0]))
                << "sentence " << b << ", beam " << beam << ", at most " << max_length;
          }
          EXPECT_LE(std::ssize(hypothesis.tokens),
                    std::max(max_length, least_tokens(c.phrases[b])));
        }
      }
    }
  }
}

// Rules that would ban the tokens of a phrase do not keep it from being generated.
TEST(PhraseSearch, PhrasesComeBeforeRulesOnRepetitionAndSuppressedTokens) {
  SmallModel s(small_config());
  const std::vector<Tokens> sources = with_end(sentences_of({5}, kVocabulary, 9));
  const std::vector<RequiredPhrases> phrases{{{{{8, 8, 8, 8}}}, {{{9, 10}}}, {{{9, 10}}}}};
  DecoderTokens tokens = kTokens;
  tokens.suppress(std::vector<std::int32_t>{9});
  const auto found =
      search(*s.model, {.source = s.batch(sources), .phrases = phrases, .tokens = tokens},
             {.beam_size = 4, .max_length = 20, .no_repeat_ngram = 2, .max_repeats = 1});
  EXPECT_TRUE(contains(found[0][0].tokens, {8, 8, 8, 8}));
  EXPECT_EQ(std::ranges::count(found[0][0].tokens, 9), 2);
}

TEST(PhraseSearch, ASentenceIsTheSameInEveryBatch) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallModel s(small_config());
  const PhraseCase c;
  const SearchOptions options{.beam_size = 4, .n_best = 4, .max_length = 20};
  const auto together = search(
      *s.model, {.source = s.batch(c.sources), .phrases = c.phrases, .tokens = kTokens}, options);
  for (std::size_t b = 0; b < c.sources.size(); ++b) {
    const std::size_t line = b;
    const auto alone = search(*s.model,
                              {.source = c.source(s, std::span(&line, 1)),
                               .phrases = std::span(&c.phrases[b], 1),
                               .tokens = kTokens},
                              options);
    expect_same(alone[0], together[b], "sentence " + std::to_string(b));
  }
  // Sentences without phrases get what they get in a search without phrases.
  const auto plain = search(*s.model, {.source = s.batch(c.sources), .tokens = kTokens}, options);
  for (std::size_t b = 0; b < c.sources.size(); ++b) {
    if (c.phrases[b].empty()) expect_same(together[b], plain[b], "sentence " + std::to_string(b));
  }
}

TEST(PhraseSearch, UnitsWithAndWithoutPhrasesEnterAndLeave) {
  if (!kernels::rows_are_independent())
    GTEST_SKIP() << "GEMM results depend on the number of rows here";
  SmallModel s(small_config());
  const PhraseCase c;
  const std::vector<SearchOptions> options{{.beam_size = 3, .n_best = 3, .max_length = 12}};
  Search search(
      *s.model, s.context,
      {.limits =
           {.units = 3, .beam_size = 3, .max_tokens = 20, .source_rows = 80, .source_length = 24},
       .tokens = kTokens});
  std::vector<Hypotheses> found(c.sources.size());
  std::map<std::int64_t, std::size_t> sentence_of;
  for (std::size_t next = 0; next < c.sources.size() || !sentence_of.empty();) {
    if (next < c.sources.size()) {
      const Admission admission = search.admit({.source = c.source(s, std::span(&next, 1)),
                                                .phrases = std::span(&c.phrases[next], 1),
                                                .options = options});
      if (!admission.ids.empty()) sentence_of[admission.ids[0]] = next++;
    }
    search.step();
    for (FoundSentence& sentence : search.collect()) {
      found[sentence_of.at(sentence.id)] = std::move(sentence.hypotheses);
      sentence_of.erase(sentence.id);
    }
  }
  const auto together = nunchi::search(
      *s.model, {.source = s.batch(c.sources), .phrases = c.phrases, .tokens = kTokens},
      options[0]);
  for (std::size_t b = 0; b < found.size(); ++b) {
    expect_same(found[b], together[b], "sentence " + std::to_string(b));
  }
}

TEST(PhraseSearch, RefusesRequestsThatCannotBeFulfilled) {
  SmallModel s(small_config());
  const PhraseCase c;
  const auto refusal = [&](std::span<const RequiredPhrases> phrases, const SearchOptions& options) {
    return error_of([&] {
      search(*s.model, {.source = s.batch(c.sources), .phrases = phrases, .tokens = kTokens},
             options);
    });
  };
  EXPECT_TRUE(says(refusal(c.phrases, {.beam_size = 1}), "a beam of at least 2"));
  EXPECT_TRUE(says(refusal(std::span(c.phrases).first(2), {.beam_size = 2}),
                   "8 sentences came with 2 lists of phrases"));
}

}  // namespace
}  // namespace nunchi::testing
