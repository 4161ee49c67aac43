// TER: the edits between two sequences of words, and Tercom's tokenizer. metrics_test.cpp compares
// scores with sacreBLEU.
#include "nunchi/evaluation/ter.h"

#include <gtest/gtest.h>

#include <random>

#include "nunchi/base/error.h"
#include "nunchi/evaluation/tercom_edits.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

using Words = std::vector<std::string>;

std::int64_t edits(const std::string& hypothesis, const std::string& reference) {
  return corpus_ter(Lines{hypothesis}, Lines{reference}, {.case_sensitive = true}).edits;
}

TEST(TercomEdits, CountInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(edits("a b c", "a b c"), 0);
  EXPECT_EQ(edits("a c", "a b c"), 1);
  EXPECT_EQ(edits("a b c d", "a b d"), 1);
  EXPECT_EQ(edits("a x c", "a b c"), 1);
  EXPECT_EQ(edits("", "a b"), 2);
  EXPECT_EQ(edits("a b", ""), 2);
  EXPECT_EQ(edits("", ""), 0);
}

TEST(TercomEdits, MovingAPhraseIsOneEdit) {
  EXPECT_EQ(edits("c d e a b", "a b c d e"), 1);
  EXPECT_EQ(edits("e a b c d", "a b c d e"), 1);
  EXPECT_EQ(edits("in Seoul we meet at three", "we meet at three in Seoul"), 1);
  EXPECT_EQ(edits("b a d c f e", "a b c d e f"), 3);
  // A phrase moves only if its words match the reference: x is substituted.
  EXPECT_EQ(edits("c x e a b", "a b c d e"), 2);
}

// The plain edit distance by the textbook's full matrix.
std::int64_t plain_distance(const Sequence& a, const Sequence& b) {
  std::vector<std::int64_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<std::int64_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::int64_t diagonal = row[0];
    row[0] = static_cast<std::int64_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::int64_t up = row[j];
      row[j] = std::min({diagonal + (a[i - 1] == b[j - 1] ? 0 : 1), up + 1, row[j - 1] + 1});
      diagonal = up;
    }
  }
  return row.back();
}

TEST(TercomEdits, AreNeverMoreThanTheEditDistanceOfShortLines) {
  std::mt19937 random(7);
  TercomEdits counter;
  int with_shifts = 0;
  for (int round = 0; round < 500; ++round) {
    Sequence a(random() % 20), b(random() % 20);
    for (Symbol& word : a) word = random() % 6;
    for (Symbol& word : b) word = random() % 6;
    const std::int64_t found = counter.count(a, b), plain = plain_distance(a, b);
    EXPECT_LE(found, plain);
    with_shifts += found < plain ? 1 : 0;
    // Moving words cannot make up for a difference in length.
    EXPECT_GE(found, std::abs(std::ssize(a) - std::ssize(b)));
  }
  EXPECT_GT(with_shifts, 50);
}

TEST(TercomEdits, ALongLineOfFewWordsEndsSoon) {
  TercomEdits counter;
  Sequence a(3000), b(3000);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 2, b[i] = (i / 3) % 2;
  EXPECT_GT(counter.count(a, b), 0);
}

TEST(TercomTokenizer, SplitsAtSpacesOnlyByDefaultAndIgnoresCase) {
  EXPECT_EQ(ter_words("Hello, World.\u3000A ", {}), (Words{"hello,", "world.", "a"}));
  EXPECT_EQ(ter_words("Hello,", {.case_sensitive = true}), Words{"Hello,"});
  EXPECT_EQ(ter_words("ΟΔΟΣ", {}), Words{"οδος"});
}

TEST(TercomTokenizer, Normalises) {
  const TerOptions options{.tokenizer = {.normalized = true}};
  EXPECT_EQ(
      ter_words("It's 1,000.5 (&quot;x&quot;), 3-4. -5", options),
      (Words{"it", "'s", "1,000.5", "(", "\"", "x", "\"", ")", ",", "3", "-", "4", ".", "-5"}));
  EXPECT_EQ(ter_words("Thomas's", options), (Words{"thomas", "'s"}));
  EXPECT_EQ(ter_words("a\n-b\nc", options), (Words{"ab", "c"}));
  EXPECT_EQ(ter_words("中文。かな", options), Words{"中文。かな"});
}

TEST(TercomTokenizer, RemovesPunctuation) {
  const TerOptions options{.tokenizer = {.no_punctuation = true}};
  EXPECT_EQ(ter_words("Yes! (no)? . \"a:b;c\" d-e", options), (Words{"yes", "no", "abc", "d-e"}));
  EXPECT_EQ(ter_words("中、文。", options), Words{"中、文。"});
}

TEST(TercomTokenizer, SupportsChineseAndJapanese) {
  EXPECT_EQ(
      ter_words("中文、ＯＫ？カナ漢", {.tokenizer = {.normalized = true, .asian_support = true}}),
      (Words{"中", "文", "、", "ｏｋ", "？", "カナ", "漢"}));
  EXPECT_EQ(ter_words("中、文？。", {.tokenizer = {.no_punctuation = true, .asian_support = true}}),
            Words{"中文"});
  EXPECT_EQ(ter_words("中、文", {.tokenizer = {.asian_support = true}}), Words{"中、文"});
}

TEST(Ter, EmptyReferencesCountAsOneHundredPercentOrNothing) {
  EXPECT_EQ(corpus_ter(Lines{"a b"}, Lines{""}).score, 100);
  EXPECT_EQ(corpus_ter(Lines{""}, Lines{""}).score, 0);
  EXPECT_EQ(corpus_ter(Lines{"a b", "c"}, Lines{"", "c"}).score, 200);
}

TEST(Ter, TakesTheClosestReferenceAndTheMeanLength) {
  const TerScore score =
      corpus_ter(Lines{"a b c"}, std::vector<Lines>{{"a b c d"}, {"x y z"}, {"a b"}});
  EXPECT_EQ(score.edits, 1);
  EXPECT_EQ(score.reference_length, 3);
}

TEST(Ter, RefusesTextsOfDifferentSizes) {
  EXPECT_THROW(corpus_ter(Lines{"a", "b"}, Lines{"a"}), Error);
  EXPECT_THROW(corpus_ter(Lines{}, Lines{}), Error);
}

}  // namespace
}  // namespace nunchi::evaluation
