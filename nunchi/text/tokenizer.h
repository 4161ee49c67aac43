// Converts text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "nunchi/text/tokens.h"

namespace nunchi {

// Immutable; any number of threads may use it at the same time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Every id is in [0, vocabulary()).
  virtual std::int64_t vocabulary() const = 0;
  // The text's tokens, without <s> and </s>. Any bytes are allowed: invalid UTF-8 becomes U+FFFD,
  // and the text is normalised to NFC, so that equivalent spellings give the same tokens.
  virtual Tokens encode(std::string_view text) const = 0;
  // The text of these tokens; <s> and </s> are left out.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // How one token is displayed: "▁bike", "<0xEA>", "</s>".
  virtual std::string piece(std::int32_t id) const = 0;
  // The ids that represent no text; each is in [0, vocabulary()) or kNoToken.
  virtual SpecialTokens special() const = 0;
  // Whether the token stands for text that the tokenizer has no piece for: <unk> or, if such a
  // character becomes its bytes, one of the bytes.
  virtual bool is_fallback(std::int32_t id) const { return id == special().unknown; }
  // The token that ends each line when lines are joined into one text: the line break or, if the
  // tokenizer has no token for it, </s>.
  virtual std::int32_t line_end() const { return special().end; }

  // Tokenizers with the same fingerprint encode every text in the same way.
  virtual std::uint64_t fingerprint() const = 0;
  // The bytes of the tokenizer's file in a model folder, and the extension of its name.
  virtual const std::string& serialized() const = 0;
  virtual const char* extension() const { return "spm"; }
};

// The share of these tokens, 0 to 1, that stand for text that the tokenizer has no piece for; 0 if
// there are no tokens.
double fallback_share(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens);

// A tokenizer of any kind from the bytes of a file, which messages call `name`. Throws Error for
// invalid bytes (see text/sentencepiece.h and text/plain_tokenizer.h).
std::unique_ptr<Tokenizer> make_tokenizer(std::string bytes, const std::string& name);
// The same from a file. Also throws Error when it is missing.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace nunchi
