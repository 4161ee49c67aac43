// A tokenizer for tests: one token for each word.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "nunchi/base/error.h"
#include "nunchi/text/tokenizer.h"
#include "nunchi/text/unicode.h"

namespace nunchi::testing {

class WordTokenizer final : public Tokenizer {
 public:
  static constexpr std::int32_t kVocabulary = 1000;

  explicit WordTokenizer(std::uint64_t fingerprint = 1) : fingerprint_(fingerprint) {}

  // A word's id, 4 to 999, is a hash of its bytes.
  static std::int32_t id_of(std::string_view word) {
    std::uint32_t sum = 0;
    for (const char c : word) sum = sum * 31 + static_cast<unsigned char>(c);
    return 4 + static_cast<std::int32_t>(sum % (kVocabulary - 4));
  }

  static Tokens tokens_of(std::string_view text) {
    const std::string valid = repaired_utf8(text);
    Tokens tokens;
    std::string word;
    for (const char c : valid + " ") {
      if (c != ' ') {
        word += c;
      } else if (!word.empty()) {
        tokens.push_back(id_of(word));
        word.clear();
      }
    }
    return tokens;
  }

  std::int64_t vocabulary() const override { return kVocabulary; }
  Tokens encode(std::string_view text) const override {
    ++calls_;
    if (text == "a text that no tokenizer likes") throw Error("the tokenizer failed");
    return tokens_of(text);
  }
  std::string decode(std::span<const std::int32_t>) const override {
    throw std::logic_error("tests do not decode");
  }
  std::string piece(std::int32_t id) const override { return std::to_string(id); }
  SpecialTokens special() const override { return kUsualSpecialTokens; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  const std::string& serialized() const override { return serialized_; }

  // The number of calls of encode().
  std::int64_t call_count() const { return calls_; }

 private:
  std::uint64_t fingerprint_;
  std::string serialized_;
  mutable std::atomic<std::int64_t> calls_ = 0;
};

}  // namespace nunchi::testing
