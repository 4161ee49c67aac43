// Text in the columns of a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

inline constexpr std::string_view kEllipsis = "…";

// The characters of a text, each with the marks that combine with it. Invalid UTF-8 is replaced by
// U+FFFD and control characters by '?'.
std::vector<std::string> glyphs_of(std::string_view text);

// Empty for a negative count.
std::string spaces(int count);

// The text, shortened with an ellipsis to at most `width` columns; characters as in glyphs_of().
std::string fitted(std::string_view text, int width);

// fitted(), followed or preceded by spaces up to `width` columns.
std::string left_aligned(std::string_view text, int width);
std::string right_aligned(std::string_view text, int width);

}  // namespace nunchi
