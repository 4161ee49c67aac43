// Checks a .spm file before SentencePiece reads it.
//
// The file is a protocol buffer, ModelProto: pieces (1), the trainer's settings (2), the
// normalizer (3), samples for a self-test (4), the denormalizer (5). SentencePiece trusts the file:
// a crafted one makes it read outside of its memory or abort the process. Nunchi also needs a piece
// that ends a sentence, and no text may be encoded as that piece or as the one that begins a
// sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi {

// Properties of a checked file.
struct SentencePieceFacts {
  std::int64_t vocabulary = 0;
  SpecialTokens special;  // unknown and end always exist
  bool byte_fallback = false;
  bool rewrites = false;  // the model has rules that change text before it is encoded
  // A space always begins a piece and occurs nowhere else in it. So the text on one side of a space
  // does not affect the encoding of the other side.
  bool spaces_begin_pieces = false;
};

// Throws Error, naming `name`, unless the bytes are a valid SentencePiece model that Nunchi can
// use.
SentencePieceFacts check_sentencepiece(std::string_view bytes, const std::string& name);

// The library stores matching symbols in an array of this size without a bounds check.
inline constexpr std::size_t kMaxNestedSymbols = 64;
// The length of the longest chain of symbols in which each is a prefix of the next.
std::size_t max_nesting(std::vector<std::string_view> symbols);

}  // namespace nunchi
