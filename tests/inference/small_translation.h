// A tokenizer learned from a few lines and a small Transformer with random weights.
#pragma once

#include "nunchi/inference/translator.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/text/sentencepiece.h"
#include "tests/files.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

inline std::string learned_bytes(const TokenizerOptions& options) {
  static const std::vector<std::string> lines = {
      "the quick brown fox jumps over the lazy dog", "a dog sleeps under the old tree",
      "the old fox sees the dog and jumps",          "how quickly daft jumping zebras vex",
      "a man and a woman walk under the tree",       "the woman sees a zebra and a fox",
  };
  std::size_t next = 0;
  return learn_tokenizer(options,
                         [&](std::string& line) {
                           if (next == lines.size()) return false;
                           line = lines[next++];
                           return true;
                         })
      .bytes;
}

// A tokenizer with byte fallback: 3 special tokens, 256 bytes, the letters, some pieces.
inline std::unique_ptr<Tokenizer> byte_tokenizer() {
  static const std::string bytes = learned_bytes({.vocabulary = 310});
  return make_tokenizer(bytes, "the tokenizer with bytes");
}

// A tokenizer of letters and a few pieces; other characters become <unk>.
inline std::unique_ptr<Tokenizer> letter_tokenizer() {
  static const std::string bytes = learned_bytes({.vocabulary = 34, .byte_fallback = false});
  return make_tokenizer(bytes, "the tokenizer of letters");
}

struct SmallTranslation {
  explicit SmallTranslation(std::unique_ptr<Tokenizer> tokenizer = byte_tokenizer(),
                            TransformerConfig config = small_config())
      : context({.threads = 1}), tokenizers(std::move(tokenizer)) {
    config.source_vocabulary = config.target_vocabulary = tokenizers.source().vocabulary();
    model = make_small<Transformer>(context, config);
  }

  Translator translator(const TranslatorOptions& options = {.search = {.max_length = 12}}) {
    return Translator(context, *model, tokenizers, options);
  }
  void save(const std::filesystem::path& folder) const {
    save_model(*model, folder);
    save_tokenizers(tokenizers, folder);
  }

  CpuContext context;
  Tokenizers tokenizers;
  std::unique_ptr<Transformer> model;
};

// The same text with the same scores, to the bit.
inline bool same(const Translation& a, const Translation& b) {
  return a.text == b.text && a.pieces == b.pieces && same_bits(a.token_scores, b.token_scores) &&
         a.score == b.score && a.log_probability == b.log_probability;
}

inline std::vector<SourceLine> lines_of(const std::vector<std::string>& texts) {
  std::vector<SourceLine> lines;
  for (const std::string& text : texts) {
    lines.push_back({.text = text, .number = static_cast<std::int64_t>(lines.size())});
  }
  return lines;
}

// Lines of many lengths, one without words among them.
inline std::vector<std::string> some_texts() {
  return {"a dog",
          "the old fox sees the dog and jumps over the tree",
          "",
          "zebra",
          "a man and a woman walk",
          "x",
          "the lazy dog sleeps under the old tree and the quick brown fox jumps over the lazy dog",
          "눈치 보는 개",
          "how quickly"};
}

}  // namespace nunchi::testing
