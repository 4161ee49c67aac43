#include "nunchi/views/columns.h"

#include <gtest/gtest.h>

#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

TEST(Columns, CharactersKeepTheirMarks) {
  EXPECT_EQ(glyphs_of("가e\xCC\x81z"), (std::vector<std::string>{"가", "e\xCC\x81", "z"}));
  EXPECT_EQ(glyphs_of("\x1b[\xFF\xC2\x9B"), (std::vector<std::string>{"?", "[", "\uFFFD", "?"}));
  EXPECT_TRUE(glyphs_of("").empty());
}

TEST(Columns, AlignedTextsHaveTheWidth) {
  for (const std::string text : {"", "a", "서울에서", "서울에서 만나요, then go", "e\xCC\x81"}) {
    for (int width = 1; width < 12; ++width) {
      EXPECT_LE(display_width(fitted(text, width)), width) << text;
      EXPECT_EQ(display_width(left_aligned(text, width)), width) << text;
      EXPECT_EQ(display_width(right_aligned(text, width)), width) << text;
    }
  }
  EXPECT_EQ(fitted("서울에서", 5), "서울…");
  EXPECT_EQ(right_aligned("ab", 4), "  ab");
  EXPECT_EQ(left_aligned("ab", 4), "ab  ");
  EXPECT_EQ(spaces(-3), "");
}

}  // namespace
}  // namespace nunchi
