#!/usr/bin/env python3
"""Writes the table of nunchi/evaluation/character_class.cpp: Unicode's punctuation, symbols and numbers.

    python tests/evaluation/make_character_class.py

Needs the module regex, which sacreBLEU's tokenizer intl uses, and clang-format.
"""

import pathlib
import subprocess

import regex

FILE = pathlib.Path(__file__).resolve().parents[2] / "nunchi" / "evaluation" / "character_class.cpp"
CLASSES = {"P": "punctuation", "S": "symbol", "N": "number"}

SOURCE = """// Written by tests/evaluation/make_character_class.py.
#include "nunchi/evaluation/character_class.h"

#include <algorithm>
#include <array>

namespace nunchi::evaluation {
namespace {

struct Range {
  char32_t first, last;
  CharacterClass kind;
};

constexpr auto P = CharacterClass::punctuation, S = CharacterClass::symbol,
               N = CharacterClass::number;

// Ascending.
constexpr std::array<Range, %d> kRanges{{%s}};

}  // namespace

CharacterClass character_class(char32_t c) {
  const auto after = std::ranges::upper_bound(kRanges, c, {}, &Range::first);
  if (after == kRanges.begin()) return CharacterClass::other;
  const Range& range = *(after - 1);
  return c <= range.last ? range.kind : CharacterClass::other;
}

}  // namespace nunchi::evaluation
"""


def ranges():
    """(first, last, class) of every run of characters of one class."""
    patterns = {name: regex.compile(rf"\p{{{name}}}") for name in CLASSES}
    found = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue  # surrogates are no characters
        name = next((name for name, pattern in patterns.items() if pattern.match(chr(code))), None)
        if name is None:
            continue
        if found and found[-1][1] == code - 1 and found[-1][2] == name:
            found[-1][1] = code
        else:
            found.append([code, code, name])
    return found


def main():
    found = ranges()
    table = ", ".join(f"{{0x{first:X}, 0x{last:X}, {name}}}" for first, last, name in found)
    FILE.write_text(SOURCE % (len(found), table))
    subprocess.run(["clang-format", "-i", FILE], check=True)


if __name__ == "__main__":
    main()
