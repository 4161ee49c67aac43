// The slots of sentence templates: kinds of values, each written in Korean and in English.
//
// A kind has a fixed number of values. No two values of a kind have the same text in either
// language, so that a sentence determines its values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace nunchi::demo {

struct Rendering {
  std::string korean, english;
};

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
