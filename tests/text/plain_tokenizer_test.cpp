#include "nunchi/text/plain_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nunchi/text/unicode.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/paths.h"

namespace nunchi::testing {
namespace {

std::unique_ptr<Tokenizer> learned(TokenizerOptions options, std::vector<std::string> lines) {
  std::size_t next = 0;
  const LearnedTokenizer result = learn_tokenizer(options, [&](std::string& line) {
    if (next == lines.size()) return false;
    line = lines[next++];
    return true;
  });
  return make_tokenizer(result.bytes, "learned");
}

const TokenizerOptions kCharacters{.kind = TokenizerKind::characters};
const TokenizerOptions kBytes{.kind = TokenizerKind::bytes};

TEST(PlainTokenizer, EachCharacterIsAToken) {
  const auto tokenizer = learned(kCharacters, {"abba", "눈치 b"});
  // <unk>, <s>, </s>, the line break, the space, a, b, 눈, 치
  EXPECT_EQ(tokenizer->vocabulary(), 9);
  EXPECT_EQ(tokenizer->encode("ab\n치"), (Tokens{5, 6, 3, 8}));
  EXPECT_EQ(tokenizer->line_end(), 3);
  EXPECT_EQ(tokenizer->decode(Tokens{1, 5, 6, 3, 8, 2}), "ab\n치");
  EXPECT_EQ(tokenizer->piece(3), "<0x0A>");
  EXPECT_EQ(tokenizer->piece(4), "▁");
  EXPECT_EQ(tokenizer->piece(7), "눈");
  EXPECT_EQ(tokenizer->piece(2), "</s>");
  EXPECT_STREQ(tokenizer->extension(), "tok");
}

TEST(PlainTokenizer, UnknownCharactersBecomeUnknownTokens) {
  const auto tokenizer = learned(kCharacters, {"abc"});
  EXPECT_EQ(tokenizer->encode("axb"), (Tokens{4, 0, 5}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("axb")), "a\uFFFDb");
}

TEST(PlainTokenizer, EachByteIsAToken) {
  const auto tokenizer = learned(kBytes, {});
  EXPECT_EQ(tokenizer->vocabulary(), 259);
  EXPECT_EQ(tokenizer->encode("A\n"), (Tokens{3 + 'A', 3 + '\n'}));
  EXPECT_EQ(tokenizer->line_end(), 3 + '\n');
  EXPECT_EQ(tokenizer->encode("눈").size(), 3u);
  EXPECT_EQ(tokenizer->piece(3 + 'A'), "A");
  EXPECT_EQ(tokenizer->piece(3 + 0xEA), "<0xEA>");
  // Half a character is invalid.
  EXPECT_EQ(tokenizer->decode(Tokens{3 + 'A', 3 + 0xEA, 3 + 'B'}), "A\uFFFDB");
}

TEST(PlainTokenizer, DecodingRestoresTheText) {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "  two  spaces ",
                                          "a\nb\n\nc",
                                          "tab\there",
                                          "눈치 😀 é",
                                          std::string("zero\0byte", 9)};
  for (const auto& tokenizer : {learned(kCharacters, texts), learned(kBytes, texts)}) {
    for (const std::string& text : texts) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    }
    // Invalid bytes are replaced, and equivalent spellings give the same tokens.
    EXPECT_TRUE(is_valid_utf8(tokenizer->decode(tokenizer->encode("a\xFF\xEAz"))));
    EXPECT_EQ(tokenizer->encode("e\u0301"), tokenizer->encode("\u00E9"));
  }
}

TEST(PlainTokenizer, EveryTokenHasADifferentPiece) {
  for (const auto& tokenizer :
       {learned(kCharacters, {"▁ <a\x01\x7F", "é\u2581"}), learned(kBytes, {})}) {
    std::vector<std::string> pieces;
    for (std::int32_t id = 0; id < tokenizer->vocabulary(); ++id) {
      pieces.push_back(tokenizer->piece(id));
      EXPECT_EQ(pieces.back().find_first_of(" \n"), std::string::npos);
    }
    std::ranges::sort(pieces);
    EXPECT_EQ(std::ranges::adjacent_find(pieces), pieces.end());
  }
}

TEST(PlainTokenizer, TheMostFrequentCharactersAreKept) {
  TokenizerOptions few = kCharacters;
  few.vocabulary = 6;  // 3 special ones, the line break, and two more
  const auto tokenizer = learned(few, {"aaabbbcc", "ccd"});
  EXPECT_EQ(tokenizer->vocabulary(), 6);
  EXPECT_EQ(tokenizer->encode("abcd"), (Tokens{4, 0, 5, 0}));
  TokenizerOptions frequent = kCharacters;
  frequent.character_coverage = 0.98;
  std::string text(99, 'a');
  text += 'b';
  EXPECT_EQ(learned(frequent, {text})->vocabulary(), 5);
}

TEST(PlainTokenizer, EmptyTextAndSymbolsAreRefused) {
  EXPECT_TRUE(says(error_of([] { learned(kCharacters, {"", ""}); }), "there is no text"));
  TokenizerOptions symbols = kBytes;
  symbols.symbols = {"<x>"};
  EXPECT_TRUE(
      says(error_of([&] { learned(symbols, {"a"}); }), "symbols are only possible with bpe"));
}

TEST(PlainTokenizer, IdsOutsideOfTheVocabularyAreRefused) {
  const auto tokenizer = learned(kCharacters, {"ab"});
  for (const std::int32_t id : {-1, 6}) {
    EXPECT_TRUE(says(error_of([&] { tokenizer->decode(Tokens{id}); }), "not in the vocabulary"));
    EXPECT_TRUE(says(error_of([&] { tokenizer->piece(id); }), "not in the vocabulary"));
  }
}

TEST(PlainTokenizer, AFileGivesTheSameTokenizer) {
  const TemporaryFolder folder;
  const auto tokenizer = learned(kCharacters, {"abc"});
  write_text(folder / "t.tok", tokenizer->serialized());
  const auto loaded = load_tokenizer(folder / "t.tok");
  EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
  EXPECT_NE(loaded->fingerprint(), learned(kCharacters, {"abcd"})->fingerprint());
  EXPECT_EQ(loaded->encode("cab"), tokenizer->encode("cab"));
}

TEST(PlainTokenizer, ErrorsNameTheLine) {
  const auto error_with = [](const std::string& list) {
    return error_of([&] { make_tokenizer("nunchi tokenizer 1\n" + list, "t.tok"); });
  };
  EXPECT_EQ(error_with("characters\n0061\n0061\n"),
            "t.tok:4: the characters are not in ascending order.");
  EXPECT_EQ(error_with("characters\nxyz\n"),
            "t.tok:3: expected the code point of a character, such as 0041.");
  EXPECT_TRUE(says(error_with("words\n"), "t.tok:2: expected 'characters'"));
}

TEST(PlainTokenizer, FuzzSeedsAreAcceptedOrRefusedAsNamed) {
  const auto seeds = std::filesystem::path(NUNCHI_SOURCE_DIR) / "tests/fuzz/corpus/plain_tokenizer";
  int count = 0;
  for (const auto& seed : std::filesystem::directory_iterator(seeds)) {
    const bool valid = seed.path().filename().string().starts_with("valid-");
    const std::string message =
        error_of([&] { make_plain_tokenizer(content(seed.path()), "seed"); });
    EXPECT_EQ(message == "no error", valid) << seed.path() << ": " << message;
    ++count;
  }
  EXPECT_GE(count, 15);
}

}  // namespace
}  // namespace nunchi::testing
