// Text without line breaks.
#pragma once

#include <algorithm>
#include <string>

namespace nunchi {

// Replaces line breaks, which a model with byte tokens can generate, by spaces.
inline std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace nunchi
