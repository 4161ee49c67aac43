#include "nunchi/evaluation/words.h"

#include "nunchi/text/unicode.h"

namespace nunchi::evaluation {
namespace {

// The first character of a non-empty text.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at]));
  };
  const char32_t lead = byte(0);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code_point = size == 1 ? lead : lead & (0xFFu >> (size + 1));
  for (std::size_t at = 1; at < size; ++at) code_point = code_point << 6 | (byte(at) & 0x3F);
  return {code_point, text.substr(0, size)};
}

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string prepared(std::string_view line, LetterCase letters) {
  std::string text = is_valid_utf8(line) ? std::string(line) : repaired_utf8(line);
  return letters == LetterCase::lower ? lowercased(text) : text;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0, at = 0;
  const auto end_word = [&] {
    if (at > begin) words.push_back(text.substr(begin, at - begin));
  };
  while (at < text.size()) {
    const Character next = first_character(text.substr(at));
    if (is_space(next.code_point)) {
      end_word();
      begin = at + next.bytes.size();
    }
    at += next.bytes.size();
  }
  end_word();
  return words;
}

std::string_view stripped_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && is_continuation_byte(text[last])) --last;
    if (!is_space(first_character(text.substr(last)).code_point)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string_view stripped(std::string_view text) {
  text = stripped_right(text);
  while (!text.empty()) {
    const Character first = first_character(text);
    if (!is_space(first.code_point)) break;
    text.remove_prefix(first.bytes.size());
  }
  return text;
}

std::vector<Character> characters(std::string_view text) {
  std::vector<Character> all;
  all.reserve(text.size());
  while (!text.empty()) {
    all.push_back(first_character(text));
    text.remove_prefix(all.back().bytes.size());
  }
  return all;
}

std::vector<Character> visible_characters(std::string_view text) {
  std::vector<Character> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    if (!is_space(next.code_point)) characters.push_back(next);
    text.remove_prefix(next.bytes.size());
  }
  return characters;
}

std::string with_spaced_characters(std::string_view text, bool (*is_separate)(char32_t)) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  while (!text.empty()) {
    const Character next = first_character(text);
    const bool separate = is_separate(next.code_point);
    if (separate) out += ' ';
    out += next.bytes;
    if (separate) out += ' ';
    text.remove_prefix(next.bytes.size());
  }
  return out;
}

}  // namespace nunchi::evaluation
