#include "nunchi/evaluation/western_punctuation.h"

namespace nunchi::evaluation {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// ASCII punctuation and the space, except ' , - and .
bool is_separate_token(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void append_spaced(std::string& out, char mark) { out.append({' ', mark, ' '}); }

enum class Mark { first, second };

// Scans pairs of adjacent characters from the left. In a pair that matches, puts spaces around the
// mark (the pair's first or second character) and continues after the pair. Works on bytes: no byte
// of a multi-byte character is a mark or a digit.
template <class Matches>
std::string with_spaced_marks(std::string_view text, Mark mark, const Matches& matches) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  std::size_t i = 0;
  while (i < text.size()) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      out += text[i++];
      continue;
    }
    if (mark == Mark::first) append_spaced(out, text[i]);
    if (mark == Mark::second) out += text[i];
    if (mark == Mark::first) out += text[i + 1];
    if (mark == Mark::second) append_spaced(out, text[i + 1]);
    i += 2;
  }
  return out;
}

}  // namespace

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t found = text.find(from);
  if (found == std::string::npos) return;
  std::string out;
  std::size_t begin = 0;
  for (; found != std::string::npos; found = text.find(from, begin)) {
    out.append(text, begin, found - begin).append(to);
    begin = found + from.size();
  }
  text = out.append(text, begin);
}

void decode_entities(std::string& text) {
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string with_spaced_punctuation(std::string_view text) {
  std::string out;
  out.reserve(2 * text.size());
  for (const char c : text) {
    if (is_separate_token(c)) {
      append_spaced(out, c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string with_spaced_points(std::string_view text) {
  std::string out = with_spaced_marks(text, Mark::second,
                                      [](char a, char b) { return !is_digit(a) && is_point(b); });
  out = with_spaced_marks(out, Mark::first,
                          [](char a, char b) { return is_point(a) && !is_digit(b); });
  return with_spaced_marks(out, Mark::second,
                           [](char a, char b) { return is_digit(a) && b == '-'; });
}

}  // namespace nunchi::evaluation
