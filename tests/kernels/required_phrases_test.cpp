#include "nunchi/kernels/required_phrases.h"

#include "nunchi/decoding/required_phrases.h"
#include "tests/support.h"

namespace nunchi::testing {
namespace {

using kernels::PhraseProgress;
using kernels::PhraseState;
using kernels::PhraseTokens;
using kernels::UnitPhrases;

struct Read {
  std::uint32_t met;
  std::int32_t missing;
  bool begun;
  bool operator==(const Read&) const = default;
};

Read read(const RequiredPhrases& phrases, const Tokens& tokens) {
  const UnitPhrases unit = packed(phrases);
  const PhraseTokens x{.tokens = tokens.data(), .length = std::ssize(tokens)};
  const PhraseState state = phrase_state(unit, x);
  const PhraseProgress progress = phrase_progress(unit, x, state);
  return {state.met, progress.missing, progress.begun};
}

TEST(RequiredPhrases, AreFoundAnywhere) {
  const RequiredPhrases one{{{{5, 6}}}};
  EXPECT_EQ(read(one, {}), (Read{0, 2, false}));
  EXPECT_EQ(read(one, {5}), (Read{0, 1, true}));
  EXPECT_EQ(read(one, {5, 5}), (Read{0, 1, true}));
  EXPECT_EQ(read(one, {5, 7}), (Read{0, 2, false}));
  EXPECT_EQ(read(one, {6, 5, 6}), (Read{1, 0, false}));
  EXPECT_EQ(read(one, {5, 6, 7, 5}), (Read{1, 0, false}));
}

TEST(RequiredPhrases, OneFormIsEnough) {
  const RequiredPhrases one{{{{5, 6, 7}, {8, 9}}}};
  EXPECT_EQ(read(one, {}), (Read{0, 2, false}));
  EXPECT_EQ(read(one, {5}), (Read{0, 2, true}));  // two more tokens either way
  EXPECT_EQ(read(one, {5, 6}), (Read{0, 1, true}));
  EXPECT_EQ(read(one, {8}), (Read{0, 1, true}));
  EXPECT_EQ(read(one, {8, 9}), (Read{1, 0, false}));
}

TEST(RequiredPhrases, APhraseThatIsRequiredTwiceIsNeededTwice) {
  const RequiredPhrases twice{{{{5}}}, {{{5}}}};
  EXPECT_EQ(read(twice, {5}), (Read{1, 1, false}));
  EXPECT_EQ(read(twice, {5, 4, 5}), (Read{3, 0, false}));
  const RequiredPhrases overlapping{{{{5, 5}}}, {{{5, 5}}}};
  EXPECT_EQ(read(overlapping, {5, 5, 5}), (Read{1, 1, true}));
  EXPECT_EQ(read(overlapping, {5, 5, 5, 5}), (Read{3, 0, false}));
}

TEST(RequiredPhrases, TheLongestPhraseCountsAndOnlyOneCanBeContinued) {
  const RequiredPhrases york{{{{6}}}, {{{5, 6}}}};
  EXPECT_EQ(read(york, {5, 6}), (Read{2, 1, false}));
  EXPECT_EQ(read(york, {5, 6, 6}), (Read{3, 0, false}));
  const RequiredPhrases same_start{{{{5, 6}}}, {{{5, 7, 8}}}};
  EXPECT_EQ(read(same_start, {5}), (Read{0, 4, true}));
}

// The tokens of one row after PhraseCandidates and ChooseCandidates, for one unit with a row for
// each hypothesis.
struct Chosen {
  std::vector<std::vector<std::int32_t>> ids;  // with a log-probability above -inf, of each row
};

Chosen choose(const RequiredPhrases& phrases, const std::vector<Tokens>& rows, std::int64_t beam,
              std::int64_t max_length, const std::vector<std::vector<float>>& logits) {
  constexpr std::int64_t kVocabulary = 10, kStride = 8;
  CpuContext context({.threads = 1});
  const std::int64_t width = std::ssize(rows), candidates = beam + 1;
  const auto size = static_cast<std::size_t>(width);
  std::vector<std::int32_t> tokens(size * kStride), unit(size, 0), length(size);
  std::vector<float> token_scores(size * kStride), all_logits;
  std::vector<double> score(size, -1);
  for (std::size_t r = 0; r < size; ++r) {
    std::ranges::copy(rows[r], tokens.begin() + static_cast<std::ptrdiff_t>(r * kStride));
    length[r] = static_cast<std::int32_t>(rows[r].size());
    all_logits.insert(all_logits.end(), logits[r].begin(), logits[r].end());
  }
  const kernels::SearchRows from{.tokens = tokens.data(),
                                 .token_scores = token_scores.data(),
                                 .score = score.data(),
                                 .unit = unit.data(),
                                 .length = length.data()};
  const UnitPhrases packed_phrases = packed(phrases);
  const kernels::UnitOptions options{.max_length = static_cast<std::int32_t>(max_length)};
  std::vector<std::int32_t> next_ids(size * kernels::kNextTokens),
      ids(size * static_cast<std::size_t>(candidates));
  std::vector<float> next_values(next_ids.size()), log_probs(ids.size());
  kernels::ChooseCandidates<float> choice{.next = {.rows = width,
                                                   .vocabulary = kVocabulary,
                                                   .stride = kStride,
                                                   .counts = {.width = width},
                                                   .hypotheses = from,
                                                   .phrases = &packed_phrases,
                                                   .logits = all_logits.data(),
                                                   .ids = next_ids.data(),
                                                   .values = next_values.data()},
                                          .units = 1,
                                          .width = width,
                                          .beam = beam,
                                          .candidates = candidates,
                                          .end_token = 2,
                                          .options = &options,
                                          .log_probs = log_probs.data(),
                                          .ids = ids.data()};
  kernels::run(context, choice.next);
  kernels::run(context, kernels::TopTokens<float>{.rows = width,
                                                  .vocabulary = kVocabulary,
                                                  .count = candidates,
                                                  .logits = all_logits.data(),
                                                  .log_probs = log_probs.data(),
                                                  .ids = ids.data()});
  std::vector<kernels::ChooseCandidates<float>::Candidate> pool(
      size * static_cast<std::size_t>(choice.pool_size()));
  choice.pool = pool.data();
  kernels::run(context, choice);
  Chosen chosen{.ids = std::vector<std::vector<std::int32_t>>(size)};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(candidates);
    if (log_probs[i] > -INFINITY) chosen.ids[row].push_back(ids[i]);
    if (i % static_cast<std::size_t>(candidates) != 0) {
      EXPECT_LE(log_probs[i], log_probs[i - 1]);
    }
  }
  return chosen;
}

// Token 3 is the likeliest, then 4, then 2 (</s>) …; 7 to 9 are very unlikely.
const std::vector<float> kLogits{-20, -20, 7, 9, 8, 6, 5, -30, -31, -32};

TEST(ChooseCandidates, EveryBankKeepsItsBestCandidate) {
  const Chosen found = choose({{{{7, 8}}}}, {{3, 3}}, 2, 8, {kLogits});
  EXPECT_EQ(found.ids[0], (std::vector<std::int32_t>{3, 7}));
  const Chosen wide = choose({{{{7, 8}}}, {{{9}}}}, {{3, 3}}, 4, 8, {kLogits});
  // The best of the banks with no and with one phrase, then the best of all.
  EXPECT_EQ(wide.ids[0], (std::vector<std::int32_t>{3, 4, 5, 7}));
}

TEST(ChooseCandidates, AHypothesisEndsOnlyWithAllPhrases) {
  EXPECT_EQ(choose({{{{7, 8}}}}, {{7, 3}}, 2, 8, {kLogits}).ids[0],
            (std::vector<std::int32_t>{3, 7}));
  EXPECT_EQ(choose({{{{7, 8}}}}, {{7, 8}}, 2, 8, {kLogits}).ids[0],
            (std::vector<std::int32_t>{3, 4, 2}));
}

TEST(ChooseCandidates, AHypothesisThatWouldEndGoesOnWithAPhrase) {
  std::vector<float> ending = kLogits;
  ending[2] = 10;
  EXPECT_EQ(choose({{{{7, 8}}}, {{{9}}}}, {{3, 3}}, 4, 8, {ending}).ids[0],
            (std::vector<std::int32_t>{7, 9}));
  EXPECT_EQ(choose({{{{7, 8}}}}, {{3, 7}}, 4, 8, {ending}).ids[0], (std::vector<std::int32_t>{8}));
  EXPECT_EQ(choose({{{{7}}}}, {{3, 7}}, 2, 8, {ending}).ids[0],
            (std::vector<std::int32_t>{2, 3, 4}));
}

TEST(ChooseCandidates, NearTheMaximumLengthOnlyPhrasesFit) {
  EXPECT_EQ(choose({{{{7, 8}}}}, {{3, 3}}, 2, 4, {kLogits}).ids[0], (std::vector<std::int32_t>{7}));
  EXPECT_EQ(choose({{{{7, 8}}}}, {{3, 7}}, 2, 3, {kLogits}).ids[0], (std::vector<std::int32_t>{8}));
  EXPECT_EQ(choose({{{{7, 8}}}}, {{3, 3}}, 2, 5, {kLogits}).ids[0],
            (std::vector<std::int32_t>{3, 7}));
}

TEST(ChooseCandidates, ShareTheBeamAmongRows) {
  const Chosen found = choose({{{{7, 8}}}}, {{3, 3}, {3, 7}}, 3, 8, {kLogits, kLogits});
  // The bank with a begun phrase gets two of three: 3 8 continues it, 3 3 7 begins it.
  EXPECT_EQ(found.ids[0], (std::vector<std::int32_t>{3, 7}));
  EXPECT_EQ(found.ids[1], (std::vector<std::int32_t>{8}));
}

TEST(RequiredPhrases, WrongOnesAreRefused) {
  const SearchOptions beam{.beam_size = 4};
  EXPECT_TRUE(says(error_of([&] { check({{{{5}}}}, 10, {.beam_size = 1}); }), "at least 2"));
  EXPECT_TRUE(says(error_of([&] { check({{{{5}}}}, 10, {.sample = true}); }), "at least 2"));
  EXPECT_TRUE(says(error_of([&] { check({{{{10}}}}, 10, beam); }), "contains token 10"));
  EXPECT_TRUE(says(error_of([&] { check({{{{}}}}, 10, beam); }), "no tokens"));
  EXPECT_TRUE(says(error_of([&] { check({{}}, 10, beam); }), "one or two forms"));
  EXPECT_TRUE(says(error_of([&] { check({{{{1}, {2}, {3}}}}, 10, beam); }), "one or two forms"));
  EXPECT_TRUE(says(error_of([&] { check(RequiredPhrases(17, {{{5}}}), 10, beam); }),
                   "17 required phrases, but at most 16"));
  EXPECT_TRUE(says(error_of([&] { check({{{Tokens(257, 5)}}}, 10, beam); }), "257 tokens"));
  EXPECT_EQ(error_of([&] { check(RequiredPhrases(16, {{{5}, {6}}}), 10, beam); }), "no error");
  EXPECT_EQ(error_of([&] { check({}, 10, {.sample = true}); }), "no error");
}

}  // namespace
}  // namespace nunchi::testing
