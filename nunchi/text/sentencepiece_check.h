// A .spm file, checked before SentencePiece sees it.
//
// The file is a protocol buffer, ModelProto: pieces (1), the trainer's settings (2), the
// normalizer (3), samples to test itself with (4), the denormalizer (5). SentencePiece trusts what
// stands in it: with a crafted one it reads outside of its memory or ends the process. And a file
// that it takes can still be none that Nunchi can use: it needs a piece that ends a sentence, and
// no text may be encoded as that piece or as the one that begins a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/text/tokens.h"

namespace nunchi {

// What a checked file says about itself, as far as Nunchi needs to know.
struct SentencePieceFacts {
  std::int64_t vocabulary = 0;
  SpecialTokens special;  // unknown and end always exist
  bool byte_fallback = false;
  bool rewrites = false;  // it has rules that change text before it is encoded
  // A space can only be the first thing in a piece and always begins one. So what stands on one
  // side of a space changes nothing on the other.
  bool spaces_begin_pieces = false;
};

// Throws Error with `name`, the place the bytes came from, if they are anything but a sound
// SentencePiece model that Nunchi can use.
SentencePieceFacts check_sentencepiece(std::string_view bytes, const std::string& name);

// The library matches symbols into an array of this size and does not look whether it has room.
inline constexpr std::size_t kMostNestedSymbols = 64;
// The longest row of symbols of which each begins with the one before.
std::size_t most_nested(std::vector<std::string_view> symbols);

}  // namespace nunchi
