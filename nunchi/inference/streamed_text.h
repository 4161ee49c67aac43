// Decodes tokens that arrive one after another.
#pragma once

#include <span>
#include <string>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// Decodes tokens of one or more lines. If the tokenizer marks the end of a line by </s>, each </s>
// becomes a line break.
std::string text_of(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens);

// text_of() of all tokens so far, in time linear in their number: text that cannot change any more
// is not decoded again. The tokenizer outlives it.
class StreamedText {
 public:
  explicit StreamedText(const Tokenizer& tokenizer);

  void add(std::span<const std::int32_t> tokens);
  std::size_t token_count() const { return count_; }
  const std::string& text() const { return text_; }

 private:
  void end_line();
  void decode();

  const Tokenizer& tokenizer_;
  bool ends_are_breaks_;
  std::string text_;
  std::size_t count_ = 0;
  std::size_t settled_ = 0;  // bytes of the text that cannot change any more
  // The tokens to decode again. The first few are settled already and only give the others their
  // context: a piece at the beginning of a text loses the space before it.
  Tokens open_;
  std::size_t context_tokens_ = 0;  // settled tokens at the beginning of open_
  std::size_t context_bytes_ = 0;   // bytes of their text
};

}  // namespace nunchi
