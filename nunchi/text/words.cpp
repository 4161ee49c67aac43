#include "nunchi/text/words.h"

#include <optional>
#include <string_view>

#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

constexpr std::string_view kWordStart = "▁";

bool is_whole_word(std::string_view piece) { return piece == "<s>" || piece == "</s>"; }

// The byte of a piece like <0xEA>.
std::optional<char> byte_of(std::string_view piece) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const std::size_t high = kDigits.find(piece[3]), low = kDigits.find(piece[4]);
  if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace

Words words_of(std::span<const std::string> pieces) {
  Words words;
  bool after_whole_word = false;
  for (const std::string& piece : pieces) {
    std::string_view rest = piece;
    const bool starts_word = rest.starts_with(kWordStart);
    if (words.texts.empty() || after_whole_word || is_whole_word(piece) || starts_word) {
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
    words.of_piece.push_back(static_cast<int>(words.texts.size()) - 1);
    after_whole_word = is_whole_word(piece);
  }
  for (std::string& text : words.texts) {
    text = text.empty() ? std::string(kWordStart) : repaired_utf8(text);
  }
  return words;
}

}  // namespace nunchi
