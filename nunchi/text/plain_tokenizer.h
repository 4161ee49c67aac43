// Tokenizers without pieces: each character of a text is a token, or each byte. A line break is a
// token like others, so that a text can have many lines.
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
// A character without a token is <unk>. As in all tokenizers, invalid UTF-8 is first replaced by
// U+FFFD and the text normalised to NFC.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/text/tokenizer.h"

namespace nunchi {

// Whether these are the bytes of a plain tokenizer's file. No SentencePiece model starts like one.
bool is_plain_tokenizer(std::string_view bytes);

// A tokenizer from the bytes of a file, which messages call `name`. Throws Error, with the line
// number, for invalid bytes.
std::unique_ptr<Tokenizer> make_plain_tokenizer(std::string bytes, const std::string& name);

// See learn_tokenizer(). A character tokenizer gets the line break and the characters of the lines,
// the most frequent ones first, until the vocabulary or the coverage is reached. A byte tokenizer
// does not depend on the lines.
LearnedTokenizer learn_plain_tokenizer(const TokenizerOptions& options, const NextLine& next_line);

}  // namespace nunchi
