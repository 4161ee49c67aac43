#include "nunchi/evaluation/tokenizer_tercom.h"

#include "nunchi/evaluation/western_punctuation.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

bool is_western_punctuation(char32_t c) {
  return std::u32string_view(U".,?:;!\"()").find(c) != std::u32string_view::npos;
}

bool is_asian_punctuation(char32_t c) {
  return c == 0x3001 || c == 0x3002 || (c >= 0x3008 && c <= 0x3011) ||
         (c >= 0x3014 && c <= 0x301F) || (c >= 0xFF61 && c <= 0xFF65) || c == 0x30FB ||
         // The full-width forms of is_western_punctuation().
         c == 0xFF0E || c == 0xFF0C || c == 0xFF1F || c == 0xFF1A || c == 0xFF1B || c == 0xFF01 ||
         c == 0xFF02 || c == 0xFF08 || c == 0xFF09;
}

// Han characters, strokes, radicals and compatibility forms, and punctuation. sacreBLEU's rule for
// kana matches only a line of nothing but kana, which the spaces at both ends rule out.
bool is_asian_word(char32_t c) {
  return (c >= 0x2E80 && c <= 0x2EFF) || (c >= 0x31C0 && c <= 0x31EF) ||
         (c >= 0x3200 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE4F) || is_asian_punctuation(c);
}

std::string normalized(std::string_view line) {
  std::string text(line);
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  decode_entities(text);
  text = " " + with_spaced_punctuation(text) + " ";
  replace_all(text, "'s ", " 's ");
  return with_spaced_points(text);
}

std::string without(std::string_view text, bool (*is_removed)(char32_t)) {
  std::string out;
  out.reserve(text.size());
  for (const Character& c : characters(text)) {
    if (!is_removed(c.code_point)) out += c.bytes;
  }
  return out;
}

}  // namespace

std::string tokenized_tercom(std::string_view line, const TercomOptions& options) {
  std::string text(line);
  if (options.normalized) {
    text = normalized(text);
    if (options.asian_support) text = with_spaced_characters(text, is_asian_word);
  }
  if (options.no_punctuation) {
    text = without(text, is_western_punctuation);
    if (options.asian_support) text = without(text, is_asian_punctuation);
  }
  return text;
}

}  // namespace nunchi::evaluation
