// Encodes each label of a classifier as one token in prepared data, so that the tokenizer of the
// texts does not need to know the labels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// The canonical form of a label: NFC, without spaces at its ends.
std::string label_of(std::string_view text);

class LabelTokenizer final : public Tokenizer {
 public:
  // Throws Error when two labels have the same canonical form.
  explicit LabelTokenizer(const std::vector<std::string>& labels);

  std::int64_t vocabulary() const override;
  // One token: the index of the label in the constructor's list, or <unk>, the token after the last
  // label, for other texts. No token for an empty text.
  Tokens encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string piece(std::int32_t id) const override;
  SpecialTokens special() const override {
    return {.unknown = static_cast<std::int32_t>(labels_.size())};
  }
  std::uint64_t fingerprint() const override;
  const std::string& serialized() const override { return serialized_; }

 private:
  std::vector<std::string> labels_;
  std::map<std::string, std::int32_t, std::less<>> tokens_;
  std::string serialized_;  // one line per label, for the fingerprint; never saved in a folder
};

}  // namespace nunchi
