// Tokenizers without pieces: each character of a text is a token, or each byte. Line breaks are
// tokens like others, so that a text of many lines is one text.
//
// Tokens 0, 1 and 2 are <unk>, <s> and </s>; then the characters in order, or the 256 bytes. The
// file is text, in ASCII:
//
//   nunchi tokenizer 1
//   characters | bytes
//   000A               characters: the code point of each token from 3 on, hexadecimal, ascending
//   0020
//   …
//
// A character that is no token is <unk>. Text is repaired and brought to NFC first, as with all
// tokenizers; so bytes that are not UTF-8 become those of U+FFFD.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi {

// Whether a file begins as ours do. No SentencePiece model does.
bool is_plain_tokenizer(std::string_view bytes);

// A tokenizer from such a file's bytes; `name` stands for them in messages. Throws Error with the
// line when they are anything else.
std::unique_ptr<Tokenizer> make_plain_tokenizer(std::string bytes, const std::string& name);

// See learn_tokenizer(): the characters of the lines and the line break, the most frequent ones
// where the vocabulary or the coverage asks for fewer; or the bytes, whatever the lines.
LearnedTokenizer learn_plain_tokenizer(const TokenizerOptions& options, const NextLine& next_line);

}  // namespace nunchi
