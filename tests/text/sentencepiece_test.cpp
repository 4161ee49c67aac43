#include "nunchi/text/sentencepiece.h"

#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <random>
#include <thread>

#include "nunchi/base/error.h"
#include "nunchi/base/wire_format.h"
#include "nunchi/text/charsmap_check.h"
#include "nunchi/text/unicode.h"
#include "tests/errors.h"
#include "tests/files.h"
#include "tests/text/small_corpus.h"
#include "tests/text/small_spm.h"

namespace nunchi {
namespace {

using namespace testing;

class SentencePiece : public ::testing::TestWithParam<TokenizerKind> {
 protected:
  static std::unique_ptr<Tokenizer> learned(bool byte_fallback) {
    return make_tokenizer(learn({.kind = GetParam(),
                                 .vocabulary = byte_fallback ? 420 : 164,
                                 .byte_fallback = byte_fallback})
                              .bytes,
                          "learned");
  }
  const std::unique_ptr<Tokenizer> with_bytes_ = learned(true), without_bytes_ = learned(false);
};

std::string utf8(char32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

// Words of random characters, separated by single spaces.
std::string random_text(std::mt19937& random) {
  std::string text;
  const auto words = 1 + random() % 6;
  for (unsigned word = 0; word < words; ++word) {
    if (word > 0) text += ' ';
    const auto length = 1 + random() % 8;
    for (unsigned i = 0; i < length; ++i) {
      constexpr char32_t kFirst[] = {0x21, 0xA1, 0x300, 0x1100, 0x4E00, 0xAC00, 0x1F300, 0x21};
      constexpr char32_t kCount[] = {94, 300, 80, 256, 2000, 11000, 500, 0x10FFDE};
      const auto range = random() % 8;
      char32_t c = kFirst[range] + static_cast<char32_t>(random()) % kCount[range];
      if ((c >= 0xD800 && c < 0xE000) || c == 0x2581) c = U'x';
      text += utf8(c);
    }
  }
  return text;
}

void expect_in_vocabulary(const Tokenizer& tokenizer, const Tokens& tokens) {
  for (const std::int32_t id : tokens) {
    EXPECT_TRUE(id == 0 || (id > 2 && id < tokenizer.vocabulary())) << id;
  }
}

TEST_P(SentencePiece, DecodingRestoresTextOfTheCorpus) {
  for (const Tokenizer* tokenizer : {with_bytes_.get(), without_bytes_.get()}) {
    for (const std::string& line : small_corpus()) {
      const Tokens tokens = tokenizer->encode(line);
      EXPECT_EQ(tokenizer->decode(tokens), line);
      EXPECT_EQ(std::ranges::count(tokens, 0), 0) << "no token is unknown";
      expect_in_vocabulary(*tokenizer, tokens);
    }
  }
}

TEST_P(SentencePiece, WithBytePiecesDecodingRestoresAnyTextInNfc) {
  std::mt19937 random(2017);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random);
    const Tokens tokens = with_bytes_->encode(text);
    EXPECT_EQ(with_bytes_->decode(tokens), nfc(text)) << ::testing::PrintToString(text);
    EXPECT_EQ(std::ranges::count(tokens, 0), 0);
  }
}

TEST_P(SentencePiece, ComposedAndDecomposedTextHaveTheSameTokens) {
  for (const Tokenizer* tokenizer : {with_bytes_.get(), without_bytes_.get()}) {
    EXPECT_EQ(tokenizer->encode("\u1102\u116e\u11ab\u110e\u1175 cafe\u0301"),
              tokenizer->encode("눈치 café"));
    EXPECT_EQ(tokenizer->encode("\u1100\u1169\u110b\u1163\u11bc\u110b\u1175"),
              tokenizer->encode("고양이"));
  }
}

TEST_P(SentencePiece, AnyBytesCanBeEncoded) {
  std::mt19937 random(5);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 == 0 ? 256 : 64));
    for (const Tokenizer* tokenizer : {with_bytes_.get(), without_bytes_.get()}) {
      const Tokens tokens = tokenizer->encode(bytes);
      EXPECT_EQ(tokens, tokenizer->encode(repaired_utf8(bytes)));
      EXPECT_TRUE(is_valid_utf8(tokenizer->decode(tokens)));
      expect_in_vocabulary(*tokenizer, tokens);
    }
  }
  EXPECT_TRUE(with_bytes_->encode("").empty());
  EXPECT_TRUE(with_bytes_->encode("   ").empty());
  EXPECT_EQ(with_bytes_->decode(with_bytes_->encode(std::string("a\0b", 3))),
            std::string("a\0b", 3));
}

TEST_P(SentencePiece, SpecialTokensInATextAreText) {
  for (const std::string text : {"<s>", "</s>", "<unk>", "<0x41>", "a <s> b</s>", "<s>cat</s>"}) {
    const Tokens tokens = with_bytes_->encode(text);
    expect_in_vocabulary(*with_bytes_, tokens);
    EXPECT_EQ(with_bytes_->decode(tokens), text);
    expect_in_vocabulary(*without_bytes_, without_bytes_->encode(text));
  }
  // This also holds when the tokenizer was learned from a text that contains them.
  const std::vector<std::string> lines(50, "<s> cat </s> <unk> <0x41> s /s 0x41 unk < > <<>>");
  const auto tokenizer =
      make_tokenizer(learn({.kind = GetParam(), .vocabulary = 274}, lines).bytes, "learned");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(lines.front())), lines.front());
  expect_in_vocabulary(*tokenizer, tokenizer->encode(lines.front()));
}

TEST_P(SentencePiece, DecodingLeavesOutBeginAndEnd) {
  Tokens tokens = with_bytes_->encode("cat dog");
  tokens.insert(tokens.begin(), with_bytes_->special().begin);
  tokens.push_back(with_bytes_->special().end);
  EXPECT_EQ(with_bytes_->decode(tokens), "cat dog");
  EXPECT_EQ(with_bytes_->decode(Tokens{}), "");
}

TEST_P(SentencePiece, InvalidBytePiecesAreDecodedAsReplacementCharacters) {
  Tokens bytes;
  for (std::int32_t id = 0; id < with_bytes_->vocabulary(); ++id) {
    if (with_bytes_->piece(id) == "<0xEA>") bytes = {id, id};
  }
  EXPECT_EQ(with_bytes_->decode(bytes), "\uFFFD\uFFFD");
}

TEST_P(SentencePiece, TokensOutsideTheVocabularyAreAnError) {
  for (const std::int32_t id : {-1, 420, 1 << 30}) {
    EXPECT_THROW(with_bytes_->decode(Tokens{5, id}), Error);
    EXPECT_THROW(with_bytes_->piece(id), Error);
  }
}

TEST_P(SentencePiece, ALongLineHasTheTokensOfItsParts) {
  std::string long_line;
  Tokens expected;
  while (long_line.size() < 300'000) {
    for (const std::string& line : small_corpus()) {
      if (!long_line.empty()) long_line += ' ';
      long_line += line;
      const Tokens tokens = with_bytes_->encode(line);
      expected.insert(expected.end(), tokens.begin(), tokens.end());
    }
  }
  EXPECT_EQ(with_bytes_->encode(long_line), expected);
}

// Copying all previous characters for each character would take minutes.
TEST_P(SentencePiece, AMegabyteWithoutSpacesIsEncodedQuickly) {
  std::string unknown, known;
  while (unknown.size() < 1'000'000) unknown += "漢字";
  while (known.size() < 200'000) known += "cat";
  const std::string fifth = unknown.substr(0, 200'000 / 6 * 6);
  EXPECT_EQ(with_bytes_->decode(with_bytes_->encode(fifth)), fifth);
  EXPECT_EQ(without_bytes_->encode(unknown), without_bytes_->encode("漢"));
  EXPECT_EQ(without_bytes_->decode(without_bytes_->encode(known)), known);
  EXPECT_EQ(without_bytes_->encode("漢字cat漢字 字"), without_bytes_->encode("字cat字 漢字"));
}

TEST_P(SentencePiece, ThreadsShareATokenizer) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& count : wrong) {
    threads.emplace_back([this, &count] {
      for (const std::string& line : small_corpus()) {
        if (with_bytes_->decode(with_bytes_->encode(line)) != line) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_P(SentencePiece, AFileGivesTheSameTokenizer) {
  const TemporaryFolder folder;
  write_text(folder / "t.spm", with_bytes_->serialized());
  const auto loaded = load_tokenizer(folder / "t.spm");
  EXPECT_EQ(loaded->serialized(), with_bytes_->serialized());
  EXPECT_EQ(loaded->fingerprint(), with_bytes_->fingerprint());
  EXPECT_NE(loaded->fingerprint(), without_bytes_->fingerprint());
  EXPECT_EQ(loaded->encode("고양이 sleeps"), with_bytes_->encode("고양이 sleeps"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SentencePiece,
                         ::testing::Values(TokenizerKind::bpe, TokenizerKind::unigram),
                         [](const auto& info) {
                           return info.param == TokenizerKind::bpe ? "Bpe" : "Unigram";
                         });

TEST(LoadTokenizer, InvalidFilesAreRefusedWithOneSentence) {
  const TemporaryFolder folder;
  const auto refusal_of = [&](const std::string& name) {
    return error_of([&] { load_tokenizer(folder / name); });
  };
  EXPECT_NE(refusal_of("missing.spm").find("No such file"), std::string::npos);
  EXPECT_NE(refusal_of("").find("not a plain file"), std::string::npos);
  const std::string name = (folder / "x.spm").string();
  write_text(name, "");
  EXPECT_EQ(refusal_of("x.spm"), name + " is not a usable tokenizer: it is empty.");
  const std::string valid = learn({.vocabulary = 400}).bytes;
  for (const std::size_t size : {valid.size() / 4, valid.size() / 2, valid.size() - 1}) {
    write_text(name, valid.substr(0, size));
    EXPECT_EQ(refusal_of("x.spm").find(name + " is not a usable tokenizer: "), 0u);
  }
}

class OneLine final : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return done_; }
  void Next() override { done_ = true; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::string line_ = "the text of another program's tokenizer";
  bool done_ = false;
};

// The output of `spm_train` with default options.
TEST(LoadTokenizer, ModelsWithSentencePieceRewritingRulesCanBeUsed) {
  for (const char* rules : {"nmt_nfkc", "nfkc_cf"}) {
    OneLine lines;
    std::string bytes;
    const auto status =
        sentencepiece::SentencePieceTrainer::Train({{"vocab_size", "35"},
                                                    {"model_type", "bpe"},
                                                    {"normalization_rule_name", rules},
                                                    {"minloglevel", "3"}},
                                                   &lines, &bytes);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const auto tokenizer = make_tokenizer(bytes, "other.spm");
    EXPECT_EQ(tokenizer->encode("ｔｅｘｔ of"), tokenizer->encode("text of")) << "full width";
  }
}

TEST(LoadTokenizer, CharacterModelsCanBeUsed) {
  SmallSpm model;
  model.kind = 4;
  model.add_bytes();
  const auto tokenizer = make_tokenizer(model.bytes(), "m.spm");
  EXPECT_EQ(tokenizer->encode("ab b"), (Tokens{3, 4, 5, 3, 5}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ab 눈b")), "ab 눈b");
}

}  // namespace
}  // namespace nunchi
