// What can stand in a sentence's slots: kinds of values, each written in Korean and in English.
//
// A kind has a fixed number of values. Within a kind no two values are written alike on either
// side, so that a sentence says which values it has.
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
  std::string_view name;  // as it stands in a template: {date}
  int values;
  Rendering (*render)(int value);  // 0 <= value < values
};

// All kinds.
std::span<const SlotKind> slot_kinds();

// The number of the kind of that name in slot_kinds(). Throws Error, with the nearest name, when
// there is none.
int slot_kind(std::string_view name);

// A number from 1 on that only this value of this kind has. It fits 16 bits.
std::uint16_t slot_number(int kind, int value);

}  // namespace nunchi::demo
