#include "nunchi/evaluation/tokenizer_intl.h"

#include <vector>

#include "nunchi/evaluation/character_class.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

// A character or an added space.
struct Token {
  CharacterClass kind;
  std::string_view bytes;
};
using Text = std::vector<Token>;

constexpr Token kSpace{CharacterClass::other, " "};

bool is_punctuation(const Token& token) { return token.kind == CharacterClass::punctuation; }
bool is_number(const Token& token) { return token.kind == CharacterClass::number; }

// Scans pairs of adjacent characters from the left, writes each pair that matches with `write`, and
// continues after it.
template <class Matches, class Write>
Text rewritten(const Text& text, const Matches& matches, const Write& write) {
  Text out;
  out.reserve(2 * text.size());
  std::size_t i = 0;
  while (i < text.size()) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      i += 2;
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

}  // namespace

std::string tokenized_intl(std::string_view line) {
  Text text;
  for (const Character& c : characters(line)) {
    text.push_back({character_class(c.code_point), c.bytes});
  }
  text = rewritten(
      text, [](const Token& a, const Token& b) { return !is_number(a) && is_punctuation(b); },
      [](Text& out, const Token& a, const Token& b) {
        out.insert(out.end(), {a, kSpace, b, kSpace});
      });
  text = rewritten(
      text, [](const Token& a, const Token& b) { return is_punctuation(a) && !is_number(b); },
      [](Text& out, const Token& a, const Token& b) {
        out.insert(out.end(), {kSpace, a, kSpace, b});
      });
  std::string out;
  for (const Token& token : text) {
    const bool symbol = token.kind == CharacterClass::symbol;
    if (symbol) out += ' ';
    out += token.bytes;
    if (symbol) out += ' ';
  }
  return out;
}

}  // namespace nunchi::evaluation
