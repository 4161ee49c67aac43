#include "nunchi/text/learn_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "nunchi/base/error.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/text/sentencepiece.h"
#include "nunchi/text/unicode.h"
#include "tests/errors.h"
#include "tests/text/small_corpus.h"

namespace nunchi {
namespace {

using namespace testing;

constexpr TokenizerKind kKinds[] = {TokenizerKind::bpe, TokenizerKind::unigram};

std::string refusal_of(const TokenizerOptions& options,
                       const std::vector<std::string>& lines = small_corpus()) {
  return error_with_kind([&] { learn(options, lines); });
}

TEST(LearnTokenizer, TheVocabularyHasTheRequestedSize) {
  for (const TokenizerKind kind : kKinds) {
    for (const bool byte_fallback : {true, false}) {
      const std::int32_t vocabulary = byte_fallback ? 450 : 194;
      const LearnedTokenizer learned =
          learn({.kind = kind, .vocabulary = vocabulary, .byte_fallback = byte_fallback});
      const auto tokenizer = make_tokenizer(learned.bytes, "learned");
      EXPECT_EQ(tokenizer->vocabulary(), vocabulary);
      EXPECT_EQ(tokenizer->piece(0), "<unk>");
      EXPECT_EQ(tokenizer->piece(tokenizer->special().begin), "<s>");
      EXPECT_EQ(tokenizer->piece(tokenizer->special().end), "</s>");
      EXPECT_EQ(learned.lines, static_cast<std::int64_t>(small_corpus().size()));
      EXPECT_EQ(learned.lines_used, learned.lines);
      std::set<std::string> pieces;
      for (std::int32_t id = 0; id < vocabulary; ++id) pieces.insert(tokenizer->piece(id));
      EXPECT_EQ(pieces.count("<0xEA>"), byte_fallback ? 1u : 0u);
      EXPECT_EQ(pieces.count("\u2581고양이"), 1u) << "a frequent word is one piece";
    }
  }
}

TEST(LearnTokenizer, TheSameTextGivesTheSameBytes) {
  for (const TokenizerKind kind : kKinds) {
    const TokenizerOptions options{.kind = kind, .vocabulary = 450, .symbols = {"<2de>"}};
    const std::string first = learn(options).bytes;
    EXPECT_EQ(learn(options).bytes, first);
    // A decomposed text with other spaces and line ends is the same text.
    std::vector<std::string> other;
    for (std::string line : small_corpus()) {
      for (std::size_t found; (found = line.find("ä")) != line.npos;)
        line.replace(found, 2, "a\u0308");
      other.push_back("  " + line + "\t\r");
      other.emplace_back(" ");
    }
    EXPECT_EQ(learn(options, other).bytes, first);
    EXPECT_EQ(learn(options, other).lines_used, static_cast<std::int64_t>(small_corpus().size()));
  }
}

TEST(LearnTokenizer, MoreLinesThanAllowedAreSampled) {
  const TokenizerOptions options{.vocabulary = 350, .max_lines = 500};
  const LearnedTokenizer learned = learn(options);
  EXPECT_LE(learned.lines_used, 500);
  EXPECT_GE(learned.lines_used, 200);
  EXPECT_EQ(learn(options).bytes, learned.bytes);
}

TEST(LearnTokenizer, SymbolsAreSingleTokens) {
  for (const TokenizerKind kind : kKinds) {
    const TokenizerOptions options{
        .kind = kind, .vocabulary = 450, .symbols = {"<2de>", "<a,b>", "\"", "<sep>", "<sepp>"}};
    const auto tokenizer = make_tokenizer(learn(options).bytes, "learned");
    for (const std::string& symbol : options.symbols) {
      const std::string text = symbol + " cat" + symbol + "dog " + symbol;
      const Tokens tokens = tokenizer->encode(text);
      EXPECT_EQ(std::ranges::count_if(
                    tokens, [&](std::int32_t id) { return tokenizer->piece(id) == symbol; }),
                3)
          << symbol;
      EXPECT_EQ(tokenizer->decode(tokens), text);
    }
  }
}

TEST(LearnTokenizer, EachDigitCanBeAToken) {
  const std::vector<std::string> lines(20, "2017 2018 abc");
  const auto split =
      make_tokenizer(learn({.vocabulary = 270, .split_digits = true}, lines).bytes, "learned");
  const auto joined = make_tokenizer(learn({.vocabulary = 275}, lines).bytes, "learned");
  EXPECT_EQ(split->encode("2017").size(), 5u) << "▁ 2 0 1 7";
  EXPECT_LT(joined->encode("2017").size(), 4u);
}

TEST(LearnTokenizer, InvalidOptionsAreUsageErrors) {
  EXPECT_EQ(refusal_of({.vocabulary = 3}),
            "usage: a vocabulary must have 4 to 16,777,216 tokens, not 3.");
  EXPECT_EQ(refusal_of({.vocabulary = 259}),
            "usage: a vocabulary of 259 has no space for characters: special tokens, symbols and "
            "bytes take 259.");
  for (const double coverage : {0.5, 1.5, double(NAN)}) {
    EXPECT_EQ(refusal_of({.character_coverage = coverage}).find("usage: the character coverage"),
              0u);
  }
  EXPECT_EQ(refusal_of({.max_lines = 0}), "usage: max_lines must be at least 1.");
  const auto symbol = [](const std::string& text) { return refusal_of({.symbols = {text}}); };
  EXPECT_EQ(symbol(""), "usage: a symbol is empty.");
  EXPECT_EQ(symbol("<s>"),
            "usage: the symbol '<s>' already exists, and text must not be encoded as it.");
  EXPECT_EQ(symbol("<0x41>"), "usage: the symbol '<0x41>' looks like the piece of a byte.");
  for (const std::string& text :
       {std::string("a b"), std::string("\t"), std::string("a\0b", 3), std::string("\u2581")}) {
    EXPECT_NE(symbol(text).find("has a space or control character."), std::string::npos);
  }
  EXPECT_NE(symbol("\xFF").find("is not UTF-8."), std::string::npos);
  EXPECT_NE(symbol(std::string(300, 'x')).find("is longer than 256 bytes."), std::string::npos);
  EXPECT_EQ(refusal_of({.symbols = {"é", "e\u0301"}}),
            "usage: the symbol 'e\u0301' is given twice.");
  std::vector<std::string> nested;
  for (std::size_t length = 1; length < 70; ++length) nested.emplace_back(length, 'x');
  EXPECT_EQ(refusal_of({.symbols = nested}),
            "usage: more than 64 symbols are prefixes of one another.");
}

TEST(LearnTokenizer, AVocabularyThatDoesNotFitTheTextIsRefusedWithThePossibleSize) {
  for (const TokenizerKind kind : kKinds) {
    const std::string large = refusal_of({.kind = kind, .vocabulary = 20000});
    EXPECT_EQ(large.find("the text is too small for a vocabulary of 20,000; "), 0u) << large;
    const std::string small = refusal_of({.kind = kind, .vocabulary = 270});
    EXPECT_EQ(small.find("a vocabulary of 270 is too small for the text's characters, which need "
                         "at least 298;"),
              0u)
        << small;
  }
}

// The size that the message names is the largest possible one.
TEST(LearnTokenizer, TheErrorNamesTheLargestPossibleVocabulary) {
  for (const TokenizerKind kind : kKinds) {
    const std::string message = refusal_of({.kind = kind, .vocabulary = 999'999});
    constexpr std::string_view kBeforeNumber = "possible one has ";
    std::string digits = message.substr(message.find(kBeforeNumber) + kBeforeNumber.size());
    digits = digits.substr(0, digits.find(' '));
    std::erase(digits, ',');
    EXPECT_EQ(refusal_of({.kind = kind, .vocabulary = std::stoll(digits)}), "no error") << message;
    EXPECT_NE(refusal_of({.kind = kind, .vocabulary = std::stoll(digits) + 1}), "no error");
  }
}

TEST(LearnTokenizer, UnusualTextNeverAbortsTheProcess) {
  const std::vector<std::vector<std::string>> texts{
      {},
      {""},
      {" ", "\t", "\u2581", "\u2585", std::string(3, '\0')},
      {"a"},
      {"<sep>"},
      {"<sep> <sep>"},
      {"\xFF"},
      {"<s> </s> <unk> <0x41>"},
      {std::string(70'000, 'x') + " y"},
      {"\u0301\u0301"},
      {"a\u2585b", "ab"},
      {std::string("a\0b", 3)},
  };
  for (const TokenizerKind kind : kKinds) {
    for (const bool byte_fallback : {true, false}) {
      for (const std::vector<std::string>& lines : texts) {
        for (const std::int64_t free_tokens : {1, 3, 20}) {
          const TokenizerOptions options{.kind = kind,
                                         .vocabulary = 4 + free_tokens + (byte_fallback ? 256 : 0),
                                         .byte_fallback = byte_fallback,
                                         .symbols = {"<sep>"}};
          try {
            const auto tokenizer = make_tokenizer(learn(options, lines).bytes, "learned");
            EXPECT_EQ(tokenizer->vocabulary(), options.vocabulary);
          } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()), "");
          }
        }
      }
      EXPECT_EQ(refusal_of({.kind = kind, .byte_fallback = byte_fallback}, texts[2]),
                "there is no text to learn a tokenizer from.");
    }
  }
}

TEST(LearnTokenizer, AnExceptionWhileReadingLinesIsPassedOn) {
  int lines = 0;
  const NextLine failing = [&](std::string& line) -> bool {
    if (++lines == 3) throw Error("corpus.gz is damaged after line 2.");
    line = "a line";
    return true;
  };
  EXPECT_THROW(learn_tokenizer({.vocabulary = 300}, failing), Error);
}

// With hooks the trainer runs in a child process.
TEST(LearnTokenizer, HooksChangeNeitherTheResultNorTheErrors) {
  using Stage = LearnProgress::Stage;
  for (const TokenizerKind kind : kKinds) {
    const TokenizerOptions options{.kind = kind, .vocabulary = 450};
    std::vector<LearnProgress> reports;
    const LearnHooks hooks{.progress = [&](const auto& progress) { reports.push_back(progress); }};
    EXPECT_EQ(learn_tokenizer(options, reader_of(small_corpus()), hooks).bytes,
              learn(options).bytes);
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.back().stage, Stage::learning);
    EXPECT_GT(reports.back().fraction, 0.5);
    EXPECT_TRUE(std::ranges::is_sorted(reports, {}, &LearnProgress::fraction));
    EXPECT_TRUE(std::ranges::is_sorted(reports, {}, &LearnProgress::stage));
    EXPECT_TRUE(std::ranges::is_sorted(reports, {}, &LearnProgress::counted));
    EXPECT_EQ(reports.back().counted, std::ssize(small_corpus()));
    const TokenizerOptions too_large{.kind = kind, .vocabulary = 100'000};
    const std::string message =
        error_with_kind([&] { learn_tokenizer(too_large, reader_of(small_corpus()), hooks); });
    EXPECT_EQ(message, refusal_of(too_large));
  }
}

TEST(LearnTokenizer, ARequestToStopEndsEveryStage) {
  for (const TokenizerKind kind :
       {TokenizerKind::bpe, TokenizerKind::unigram, TokenizerKind::characters}) {
    std::atomic<bool> stop = true;
    EXPECT_THROW(learn_tokenizer({.kind = kind, .vocabulary = 450}, reader_of(small_corpus()),
                                 {.stop = &stop}),
                 Interrupted);
    if (kind == TokenizerKind::characters) continue;
    stop = false;
    const LearnHooks while_learning{
        .progress = [&](const auto& now) { stop = now.stage != LearnProgress::Stage::reading; },
        .stop = &stop};
    EXPECT_THROW(learn_tokenizer({.kind = kind, .vocabulary = 450}, reader_of(small_corpus()),
                                 while_learning),
                 Interrupted);
  }
}

}  // namespace
}  // namespace nunchi
