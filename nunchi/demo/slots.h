// The slots of sentences: kinds of values, each written in Korean and in English.
//
// A kind has a fixed number of values. Within a kind no two values are written alike in either
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
  std::string_view name;  // in templates: {date}
  int values;
  Rendering (*render)(int value);  // 0 <= value < values
};

// All kinds.
std::span<const SlotKind> slot_kinds();

// The index of the kind with that name in slot_kinds(). Throws Error naming the nearest kind when
// there is none.
int slot_kind(std::string_view name);

// A number of at least 1 that is unique to this value of this kind. It fits 16 bits.
std::uint16_t slot_number(int kind, int value);

}  // namespace nunchi::demo
