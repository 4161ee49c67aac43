// A text that stays one line.
#pragma once

#include <algorithm>
#include <string>

namespace nunchi {

// A model that knows bytes can say line breaks too; they become spaces.
inline std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace nunchi
