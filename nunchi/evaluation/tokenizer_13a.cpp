#include "nunchi/evaluation/tokenizer_13a.h"

namespace nunchi::evaluation {
namespace {

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

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// ASCII punctuation and the space, except ' , - and .
bool stands_alone(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void append_spaced(std::string& out, char mark) { out.append({' ', mark, ' '}); }

enum class Mark { first, second };

// Goes through pairs of neighbours from the left. In a pair that matches, the mark gets spaces
// around it, and the search continues after the pair. Works on bytes: no byte of a multi-byte
// character is a mark or a digit.
template <class Fits>
std::string with_marks_apart(std::string_view text, Mark mark, const Fits& fits) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 1 == text.size() || !fits(text[at], text[at + 1])) {
      out += text[at++];
      continue;
    }
    if (mark == Mark::first) append_spaced(out, text[at]);
    if (mark == Mark::second) out += text[at];
    if (mark == Mark::first) out += text[at + 1];
    if (mark == Mark::second) append_spaced(out, text[at + 1]);
    at += 2;
  }
  return out;
}

}  // namespace

std::string tokenized_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  // In this order, as in the original: "&amp;lt;" becomes "<".
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");

  // Spaces at both ends give the first and the last character a neighbour.
  std::string out = " ";
  out.reserve(2 * text.size() + 2);
  for (const char c : text) {
    if (stands_alone(c)) {
      append_spaced(out, c);
    } else {
      out += c;
    }
  }
  out += ' ';
  out = with_marks_apart(out, Mark::second,
                         [](char a, char b) { return !is_digit(a) && is_point(b); });
  out = with_marks_apart(out, Mark::first,
                         [](char a, char b) { return is_point(a) && !is_digit(b); });
  return with_marks_apart(out, Mark::second,
                          [](char a, char b) { return is_digit(a) && b == '-'; });
}

}  // namespace nunchi::evaluation
