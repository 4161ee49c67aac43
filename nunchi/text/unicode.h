// UTF-8 and Unicode.
#pragma once

#include <string>
#include <string_view>

namespace nunchi {

bool is_valid_utf8(std::string_view text);

// Removes the first character of `text`, which must not be empty, and returns it. An invalid part
// is removed as a whole and returned as U+FFFD.
char32_t take_character(std::string_view& text);

// The text with each maximal invalid part replaced by one U+FFFD, as Python's
// bytes.decode("utf-8", "replace") does.
std::string repaired_utf8(std::string_view text);

// Normalisation form C: decomposed Hangul becomes syllables. `text` must be valid UTF-8.
std::string nfc(std::string_view text);

// Lower case as Python's str.lower(): a final sigma is ς, İ becomes i and a combining dot. `text`
// must be valid UTF-8.
std::string lowercased(std::string_view text);

// Whether the character is a letter, a digit or a mark of a script that separates words by spaces:
// two such characters side by side belong to one word. Han characters, Kana, Thai, Lao, Khmer and
// Burmese letters are not, because their words have no visible limits.
bool is_word_character(char32_t character);

// Columns that the text takes in a terminal: 2 for a Hangul syllable, 0 for a combining mark.
// `text` must be valid UTF-8.
int display_width(std::string_view text);

}  // namespace nunchi
