// From text to token numbers and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "nunchi/text/tokens.h"

namespace nunchi {

// Immutable once made; any number of threads may use it at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Every id is in [0, vocabulary()).
  virtual std::int64_t vocabulary() const = 0;
  // The text's tokens, without <s> and </s>. Invalid UTF-8 becomes U+FFFD and the text NFC first,
  // so that one text in two encodings is one text. Any bytes are allowed.
  virtual Tokens encode(std::string_view text) const = 0;
  // The text of these tokens; <s> and </s> are left out.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // How one token looks: "▁bike", "<0xEA>", "</s>".
  virtual std::string piece(std::int32_t id) const = 0;
  // The ids that stand for no text; each is in [0, vocabulary()) or kNoToken.
  virtual SpecialTokens special() const = 0;
  // What ends a line where lines are joined to one text: the token of a line break, or </s> where
  // the tokenizer knows none.
  virtual std::int32_t line_end() const { return special().end; }

  // Decides what encode() gives: two tokenizers with the same fingerprint agree on every text.
  virtual std::uint64_t fingerprint() const = 0;
  // The file's bytes, to be written into a model folder, and how its name ends there.
  virtual const std::string& serialized() const = 0;
  virtual const char* extension() const { return "spm"; }
};

// A tokenizer from a file's bytes, of whichever kind; `name` stands for them in messages. Throws
// Error when they are none (see text/sentencepiece.h and text/plain_tokenizer.h).
std::unique_ptr<Tokenizer> make_tokenizer(std::string bytes, const std::string& name);
// The same from a file. Throws Error when it is missing, too.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace nunchi
