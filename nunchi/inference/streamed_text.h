// The text of tokens that come one after another.
#pragma once

#include <span>
#include <string>

#include "nunchi/text/tokenizer.h"

namespace nunchi {

// The text of tokens that may be many lines: where the tokenizer ends them with </s>, which is no
// text to it, that is a line break.
std::string text_of(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens);

// text_of() of all tokens so far, in time linear in their number: what cannot change any more is
// not decoded again. The tokenizer outlives it.
class StreamedText {
 public:
  explicit StreamedText(const Tokenizer& tokenizer);

  void add(std::span<const std::int32_t> tokens);
  std::size_t tokens() const { return count_; }
  const std::string& text() const { return text_; }

 private:
  void end_line();
  void decode();

  const Tokenizer& tokenizer_;
  bool ends_are_breaks_;
  std::string text_;
  std::size_t count_ = 0;
  std::size_t settled_ = 0;  // bytes of the text that stay as they are
  // Tokens whose text comes after that. The first few are settled already: what they say tells how
  // the others begin, as a piece at the beginning of a text has no space before it.
  Tokens open_;
  std::size_t known_ = 0;        // of them
  std::size_t known_bytes_ = 0;  // of their text
};

}  // namespace nunchi
