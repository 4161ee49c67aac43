#include "nunchi/evaluation/tokenizer_zh.h"

#include <algorithm>
#include <array>

#include "nunchi/evaluation/western_punctuation.h"
#include "nunchi/evaluation/words.h"

namespace nunchi::evaluation {
namespace {

struct Range {
  char32_t first, last;
};

// The characters that sacreBLEU calls Chinese. Its list also means to contain the Han characters
// past U+FFFF, but writes them as "\u20000" to "\u2a6d6", which Python reads as two characters. So
// it contains U+2001 to U+2A6D instead, which are punctuation and symbols, and no character past
// U+FFFF.
constexpr std::array<Range, 18> kChinese{{{0x2001, 0x2A6D},
                                          {0x2E80, 0x2EFF},
                                          {0x2F00, 0x2FDF},
                                          {0x2FF0, 0x2FFF},
                                          {0x3000, 0x303F},
                                          {0x3100, 0x312F},
                                          {0x31A0, 0x31BF},
                                          {0x31C0, 0x31EF},
                                          {0x3200, 0x32FF},
                                          {0x3300, 0x33FF},
                                          {0x3400, 0x4DB5},
                                          {0x4E00, 0x9FBB},
                                          {0xF900, 0xFA2D},
                                          {0xFA30, 0xFA6A},
                                          {0xFA70, 0xFAD9},
                                          {0xFE10, 0xFE1F},
                                          {0xFE30, 0xFE4F},
                                          {0xFF00, 0xFFEF}}};

bool is_chinese(char32_t c) {
  return std::ranges::any_of(
      kChinese, [c](const Range& range) { return c >= range.first && c <= range.last; });
}

}  // namespace

std::string tokenized_zh(std::string_view line) {
  return with_spaced_points(with_spaced_punctuation(with_spaced_characters(line, is_chinese)));
}

}  // namespace nunchi::evaluation
