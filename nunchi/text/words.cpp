#include "nunchi/text/words.h"

#include <optional>
#include <string_view>

#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::string_view kWordStart = "▁";

// The byte of a piece like <0xEA>.
std::optional<char> byte_of(std::string_view piece) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const std::size_t high = kDigits.find(piece[3]), low = kDigits.find(piece[4]);
  if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

Words words_of(std::span<const std::string> pieces, LastPiece last) {
  Words words;
  for (const std::string& piece : pieces) {
    std::string_view rest = piece;
    const bool starts_word = rest.starts_with(kWordStart);
    const bool is_end = last == LastPiece::end_token && &piece == &pieces.back();
    if (words.texts.empty() || is_end || starts_word) {
      words.texts.emplace_back();
      words.sizes.push_back(0);
    }
    if (starts_word) rest.remove_prefix(kWordStart.size());
    if (const auto byte = byte_of(piece)) {
      words.texts.back() += *byte;
    } else {
      words.texts.back() += rest;
    }
    ++words.sizes.back();
    words.word_of_piece.push_back(static_cast<int>(words.texts.size()) - 1);
  }
  for (std::string& text : words.texts) {
    text = text.empty() ? std::string(kWordStart) : repaired_utf8(text);
  }
  return words;
}

}  // namespace nunchi
