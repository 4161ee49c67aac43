#include "nunchi/views/columns.h"

#include <algorithm>

#include "nunchi/text/unicode.h"

namespace nunchi {

std::vector<std::string> glyphs_of(std::string_view text) {
  std::vector<std::string> glyphs;
  const std::string valid = repaired_utf8(text);
  for (std::size_t begin = 0; begin < valid.size();) {
    std::size_t end = begin + 1;
    while (end < valid.size() && (static_cast<unsigned char>(valid[end]) & 0xC0u) == 0x80u) ++end;
    std::string glyph = valid.substr(begin, end - begin);
    const auto first = static_cast<unsigned char>(glyph[0]);
    const bool c1 = first == 0xC2u && static_cast<unsigned char>(glyph[1]) < 0xA0u;
    if (first < 0x20u || first == 0x7Fu || c1) glyph = "?";
    if (display_width(glyph) == 0 && !glyphs.empty()) {
      glyphs.back() += glyph;
    } else {
      glyphs.push_back(std::move(glyph));
    }
    begin = end;
  }
  return glyphs;
}

std::string spaces(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

std::string fitted(std::string_view text, int width) {
  std::string whole, cut;
  for (const std::string& glyph : glyphs_of(text)) {
    if (display_width(whole) + display_width(glyph) < width) cut = whole + glyph;
    whole += glyph;
    if (display_width(whole) > width) return cut + std::string(kEllipsis);
  }
  return whole;
}

std::string left_aligned(std::string_view text, int width) {
  const std::string shown = fitted(text, width);
  return shown + spaces(width - display_width(shown));
}

std::string right_aligned(std::string_view text, int width) {
  const std::string shown = fitted(text, width);
  return spaces(width - display_width(shown)) + shown;
}

}  // namespace nunchi
