// A tokenizer for tests with a given list of pieces.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "nunchi/text/fnv1a.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi::testing {

// The pieces of a text are separated by spaces; each is one token, <unk> if it is not in the list.
class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces) : pieces_{"<unk>", "<s>", "</s>"} {
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    for (const std::string& piece : pieces_) serialized_ += piece + "\n";
  }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(pieces_.size()); }
  Tokens encode(std::string_view text) const override {
    Tokens tokens;
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
      const auto found = std::ranges::find(pieces_, word);
      tokens.push_back(found == pieces_.end() ? 0
                                              : static_cast<std::int32_t>(found - pieces_.begin()));
    }
    return tokens;
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text += (text.empty() ? "" : " ") + piece(id);
    return text;
  }
  std::string piece(std::int32_t id) const override {
    return pieces_.at(static_cast<std::size_t>(id));
  }
  SpecialTokens special() const override { return kUsualSpecialTokens; }
  std::uint64_t fingerprint() const override { return fnv1a(serialized_); }
  const std::string& serialized() const override { return serialized_; }

 private:
  std::vector<std::string> pieces_;
  std::string serialized_;
};

}  // namespace nunchi::testing
