// Splits text exactly as Python's str methods do: sacreBLEU, which defines the scores, uses them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nunchi::evaluation {

enum class LetterCase { kept, lower };

// The line as valid UTF-8, each invalid part replaced by U+FFFD, lowercased if asked for.
std::string prepared(std::string_view line, LetterCase letters);

// The functions below take valid UTF-8 and return views of it.

// str.isspace(): Unicode's white space and U+001C to U+001F.
bool is_space(char32_t c);

// str.split(): the parts between white space, none of them empty.
std::vector<std::string_view> split(std::string_view text);

// str.rstrip() and str.strip().
std::string_view stripped_right(std::string_view text);
std::string_view stripped(std::string_view text);

// The code points, each with its bytes: all of them, or those that are not white space.
struct Character {
  char32_t code_point;
  std::string_view bytes;
};
std::vector<Character> characters(std::string_view text);
std::vector<Character> visible_characters(std::string_view text);

// The text with a space before and after each character that `is_separate` accepts.
std::string with_spaced_characters(std::string_view text, bool (*is_separate)(char32_t));

}  // namespace nunchi::evaluation
