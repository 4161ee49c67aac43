// The slots of sentence templates: kinds of values, each written in Korean and in English.
//
// A kind has a fixed number of values. No two values of a kind have the same text in either
// language, so that a sentence determines its values. The words of a value are linked with the
// words that they translate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/text/words.h"

namespace nunchi::demo {

// A text in both languages. Its links have one or more Korean words (sources) for each English
// content word (target): a word that depends on the value, and not articles, prepositions or units
// that all values share ("won", "floor"). Words are separated by spaces.
struct Rendering {
  std::string korean, english;
  std::vector<WordLink> links = {};
};

// The rendering of marked texts. Words with a common mark, lower-case letters behind a '|', mean
// the same:
//   linked("오후|p 3시|h 20분|m에", "at 3:20|hm PM|p")
// Texts without any mark: each English word is linked with each Korean word, except articles,
// prepositions and conjunctions.
Rendering linked(std::string_view marked_korean, std::string_view marked_english);

struct SlotKind {
  std::string_view name;  // as in templates, without braces: "date" for {date}
  int values;
  Rendering (*render)(int value);  // 0 <= value < values
};

// All slot kinds.
std::span<const SlotKind> slot_kinds();

// The index in slot_kinds() of the kind with that name. Throws Error naming the nearest kind when
// there is none.
int slot_kind(std::string_view name);

// A number of at least 1 that is unique to this value of this kind. It fits in 16 bits.
std::uint16_t slot_number(int kind, int value);

}  // namespace nunchi::demo
