// Splitting into words, characters and n-grams.
#include "nunchi/evaluation/words.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "nunchi/evaluation/bleu.h"
#include "nunchi/evaluation/character_class.h"
#include "nunchi/evaluation/files.h"
#include "nunchi/evaluation/ngrams.h"
#include "nunchi/evaluation/tokenizer_13a.h"
#include "tests/files.h"
#include "tests/support.h"

namespace nunchi::evaluation {
namespace {

using Words = std::vector<std::string>;

Words words_13a(const std::string& line) { return bleu_words(line, {}); }

TEST(PythonSplit, KnowsPythonsWhiteSpace) {
  using namespace std::string_literals;
  const Words spaces{" ",      "\t",     "\v",     "\f",     "\r",     "\x1C",   "\x1D",
                     "\x1E",   "\x1F",   "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A",
                     "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
  for (const std::string& space : spaces) {
    const std::string text = space + "a" + space + space + "b" + space;
    EXPECT_EQ(split(text), (std::vector<std::string_view>{"a", "b"})) << text;
    EXPECT_EQ(stripped_right(text), space + "a" + space + space + "b") << text;
    EXPECT_EQ(visible_characters(text).size(), 2u) << text;
  }
  for (const std::string& other :
       {"\0"s, "\x1B"s, "\u0084"s, "\u180E"s, "\u200B"s, "\u2060"s, "\uFEFF"s, "\U0001F600"s}) {
    const std::string text = "a" + other;
    EXPECT_EQ(split(text), std::vector<std::string_view>{text});
    EXPECT_EQ(stripped_right(text), text);
    EXPECT_EQ(visible_characters(text).size(), 2u);
  }
  EXPECT_TRUE(split(" \u3000 ").empty());
  EXPECT_TRUE(stripped_right(" \u3000 ").empty());
}

TEST(VisibleCharacters, AreCodePointsWithTheirBytes) {
  const auto found = visible_characters("a\u00E9 \uAC00\U0001F600");
  ASSERT_EQ(found.size(), 4u);
  const std::vector<char32_t> code_points{U'a', U'\u00E9', U'\uAC00', U'\U0001F600'};
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].code_point, code_points[i]);
    EXPECT_EQ(found[i].bytes.size(), i + 1);
  }
}

TEST(Tokenizer13a, SplitsPunctuationAndKeepsNumbersTogether) {
  EXPECT_EQ(words_13a("Hello, world!"), (Words{"Hello", ",", "world", "!"}));
  EXPECT_EQ(words_13a("1,000.5, 3. .5 v2.x"),
            (Words{"1,000.5", ",", "3", ".", ".", "5", "v2", ".", "x"}));
  EXPECT_EQ(words_13a("10-20 re-do -5"), (Words{"10", "-", "20", "re-do", "-5"}));
  EXPECT_EQ(words_13a("don't (a/b)"), (Words{"don't", "(", "a", "/", "b", ")"}));
  EXPECT_EQ(words_13a("wait..."), (Words{"wait", ".", ".", "."}));
  EXPECT_EQ(words_13a("é.ß,가."), (Words{"é", ".", "ß", ",", "가", "."}));
}

TEST(Tokenizer13a, DecodesEntitiesInTheOriginalOrder) {
  EXPECT_EQ(words_13a("&quot;a&quot; &amp;lt; &amp;quot;"),
            (Words{"\"", "a", "\"", "<", "&", "quot", ";"}));
  EXPECT_EQ(words_13a("a<skipped>b"), Words{"ab"});
  EXPECT_EQ(words_13a("hyphen-\nated\nlines"), (Words{"hyphenated", "lines"}));
}

TEST(CharacterClasses, AreUnicodesCategories) {
  using enum CharacterClass;
  const auto all = [](std::u32string_view text, CharacterClass kind) {
    for (const char32_t c : text) EXPECT_EQ(character_class(c), kind) << std::uint32_t(c);
  };
  all(U"!\"#%&'()*,-./:;?@[\\]_{}¡§«»¿–—‘“…、。〈『】·፠﹏！", punctuation);
  all(U"$+<=>^`|~¢©°±´×÷€→∀■☃♥㎏￥～😀🇰", symbol);
  all(U"0189²½٣〇Ⅷ①㊿０𝟘", number);
  all(U" aZé가中\0\t\u0300\u200B\uFFFE\U0010FFFF", other);
}

Words words_of(const std::string& line, BleuTokenizer tokenizer) {
  return bleu_words(line, {.tokenizer = tokenizer});
}

TEST(TokenizerIntl, SplitsPunctuationAndSymbolsOfEveryScript) {
  const auto intl = [](const std::string& line) {
    return words_of(line, BleuTokenizer::international);
  };
  EXPECT_EQ(intl("«Hallo», sagte er…"), (Words{"«", "Hallo", "»", ",", "sagte", "er", "…"}));
  EXPECT_EQ(intl("1,000.5€ ½·3 a.b"), (Words{"1,000.5", "€", "½·3", "a", ".", "b"}));
  // As in mteval-v14, a point after a number at the end of the line stays.
  EXPECT_EQ(intl("in 1999."), (Words{"in", "1999."}));
  EXPECT_EQ(intl("1999. Yes &amp;"), (Words{"1999", ".", "Yes", "&", "amp", ";"}));
}

TEST(TokenizerZh, SplitsChineseCharactersAndPunctuation) {
  const auto zh = [](const std::string& line) { return words_of(line, BleuTokenizer::chinese); };
  EXPECT_EQ(zh("我有3.5元，ABC-d!"), (Words{"我", "有", "3.5", "元", "，", "ABC-d", "!"}));
  EXPECT_EQ(zh(" .5 a"), (Words{".5", "a"}));  // a point at the beginning has no neighbour
  EXPECT_EQ(zh("“é”"), (Words{"“", "é", "”"}));
  EXPECT_EQ(zh("𠀀𠀁"), Words{"𠀀𠀁"});  // past U+FFFF: not in sacreBLEU's list
}

TEST(BleuWords, FollowTheOptions) {
  EXPECT_EQ(bleu_words("Ab, c.\r", {.tokenizer = BleuTokenizer::none}), (Words{"Ab,", "c."}));
  EXPECT_EQ(bleu_words("Ab 가 ", {.tokenizer = BleuTokenizer::character}), (Words{"A", "b", "가"}));
  EXPECT_EQ(bleu_words("ΟΔΟΣ İ", {.lowercase = true}), (Words{"οδος", "i\u0307"}));
}

// Compares the numbers with a map of n-grams, for every n-gram of every sequence.
TEST(NgramNumbers, EqualNumbersAreEqualNgrams) {
  std::mt19937 random(11);
  Ngrams ngrams;
  for (int round = 0; round < 200; ++round) {
    std::vector<Sequence> sequences(1 + random() % 3);
    for (Sequence& sequence : sequences) {
      sequence.resize(random() % (round % 50 == 0 ? 400 : 12));
      for (Symbol& symbol : sequence) symbol = random() % 3 == 0 ? 0x10FFFF : random() % 3;
    }
    ngrams.start(sequences);
    for (std::size_t n = 1; n <= 6; ++n) {
      if (n > 1) ngrams.extend();
      std::map<Sequence, std::uint32_t> number_of;
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        const std::size_t length = sequences[s].size();
        ASSERT_EQ(ngrams.of(s).size(), length < n ? 0 : length - n + 1);
        for (std::size_t i = 0; i < ngrams.of(s).size(); ++i) {
          const auto begin = sequences[s].begin() + static_cast<std::ptrdiff_t>(i);
          const Sequence ngram(begin, begin + static_cast<std::ptrdiff_t>(n));
          const auto [entry, added] = number_of.try_emplace(ngram, ngrams.of(s)[i]);
          ASSERT_EQ(entry->second, ngrams.of(s)[i]);
        }
      }
      ASSERT_EQ(number_of.size(), ngrams.distinct());
    }
  }
}

TEST(EvaluationFiles, AreReadLineByLine) {
  const testing::TemporaryFolder folder;
  testing::write_text(folder / "text",
                      "\xEF\xBB\xBF"
                      "a\r\n\nb\xFF\rc\nlast");
  const TextFile text = read_text((folder / "text").string());
  EXPECT_EQ(text.lines, (Lines{"a", "", "b\uFFFD\rc", "last"}));
  EXPECT_EQ(text.repaired, 1);
}

TEST(EvaluationFiles, ErrorsNameTheFile) {
  const testing::TemporaryFolder folder;
  testing::write_text(folder / "empty", "");
  const std::string empty = (folder / "empty").string();
  EXPECT_EQ(testing::error_of([&] { read_text(empty); }),
            empty + " is empty; there is nothing to score.");
  const std::string missing = (folder / "missing").string();
  EXPECT_NE(testing::error_of([&] { read_text(missing); }).find(missing), std::string::npos);
  EXPECT_EQ(testing::error_of([] {
              check_same_lines({.name = "hyp", .lines = Lines(1000)},
                               {.name = "ref", .lines = Lines(999)});
            }),
            "ref has 999 lines but hyp has 1,000. Each line needs exactly one counterpart.");
}

}  // namespace
}  // namespace nunchi::evaluation
