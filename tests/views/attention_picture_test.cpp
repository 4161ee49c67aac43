#include "nunchi/views/attention_picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The terminal columns of the bars of a line.
std::vector<int> bars_of(const std::string& line) {
  const std::string bar = "│";
  std::vector<int> columns;
  for (auto found = line.find(bar); found != line.npos; found = line.find(bar, found + 1)) {
    columns.push_back(display_width(line.substr(0, found)));
  }
  return columns;
}

std::string without_colors(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  return plain;
}

AttentionMatrix meeting() {
  return {{"2026년", "서울에서", "at", "만나요", "</s>"},
          {"Let's", "meet", "in", "Seoul", "서울"},
          {0.02f, 0.03f, 0.00f, 0.90f, 0.05f,    //
           0.02f, 0.10f, 0.01f, 0.45f, 0.42f,    //
           0.10f, 0.60f, 0.20f, 0.05f, 0.05f,    //
           0.00f, 0.99f, 0.01f, 0.00f, 0.00f,    //
           0.20f, 0.20f, 0.20f, 0.20f, 0.20f}};  // the first of equal weights has the star
}

// A matrix of `sources` × `targets` words with different rows that sum to 1.
AttentionMatrix large_matrix(int sources, int targets) {
  AttentionMatrix matrix;
  for (int s = 0; s < sources; ++s) matrix.sources.emplace_back(s % 3 == 0 ? "word" : "낱말에서");
  for (int t = 0; t < targets; ++t) {
    matrix.targets.emplace_back(t % 2 == 0 ? "눈치" : "Nunchi");
    for (int s = 0; s < sources; ++s) {
      matrix.weights.push_back(s == t % sources ? 0.7f : 0.3f / static_cast<float>(sources - 1));
    }
  }
  return matrix;
}

TEST(AttentionPicture, AlignsHangulAndLatinColumns) {
  EXPECT_EQ(attention_picture(meeting()),
            "          서\n"
            "       20 울    만\n"
            "       26 에 a  나 </\n"
            "       년 서 t  요 s>\n"
            "Let's │         ██*░░ │ 만나요 90%\n"
            " meet │   ░░    ▓▓*▓▓ │ 만나요 45%\n"
            "   in │░░ ██*▒▒ ░░ ░░ │ 서울에서 60%\n"
            "Seoul │   ██*         │ 서울에서 99%\n"
            " 서울 │▒▒*▒▒ ▒▒ ▒▒ ▒▒ │ 2026년 20%\n"
            "\n"
            "░░ 5%+  ▒▒ 20%+  ▓▓ 40%+  ██ 60%+  * max\n");
}

TEST(AttentionPicture, BarsAreAligned) {
  int rows = 0;
  for (const std::string& line : lines_of(attention_picture(meeting()))) {
    const auto bars = bars_of(line);
    if (bars.empty()) continue;
    EXPECT_EQ(bars, (std::vector<int>{6, 6 + 1 + 5 * 3})) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 5);
}

TEST(AttentionPicture, StaysWithinItsWidth) {
  for (const int width : {40, 41, 60, 80, 200}) {
    for (const int sources : {1, 2, 7, 20, 23, 64}) {
      const AttentionMatrix matrix = large_matrix(sources, 9);
      const std::string picture = attention_picture(matrix, {.width = width});
      std::size_t rows = 0, stars = 0;
      for (const std::string& line : lines_of(picture)) {
        EXPECT_LE(display_width(line), width) << line;
        const bool row = !bars_of(line).empty();
        rows += row;
        stars += row && line.find('*') != line.npos;
      }
      EXPECT_EQ(rows % matrix.targets.size(), 0u);  // every band has every target
      EXPECT_EQ(stars, matrix.targets.size());      // every target has one star
    }
  }
}

TEST(AttentionPicture, TwentySourcesFitSideBySide) {
  const auto lines = lines_of(attention_picture(large_matrix(20, 1)));
  int rows = 0;
  for (const std::string& line : lines) rows += !bars_of(line).empty();
  EXPECT_EQ(rows, 1);
}

TEST(AttentionPicture, IsAtLeastFortyColumnsWide) {
  EXPECT_EQ(attention_picture(large_matrix(9, 3), {.width = -5}),
            attention_picture(large_matrix(9, 3), {.width = 40}));
}

TEST(AttentionPicture, LongLabelsAreCut) {
  const std::string longest(100, 'x');
  const AttentionMatrix matrix{
      {longest, "가나다라마바사아자차카타파하"}, {longest, "하"}, {1, 0, 0, 1}};
  const std::string picture = attention_picture(matrix, {.width = 40});
  for (const std::string& line : lines_of(picture)) EXPECT_LE(display_width(line), 40) << line;
  EXPECT_NE(picture.find("xxxxxxxxxxxxx… │"), std::string::npos) << picture;
  EXPECT_NE(picture.find("│ 가나다라… 100%"), std::string::npos) << picture;
}

TEST(AttentionPicture, ColoursDoNotChangeTheText) {
  const std::string plain = attention_picture(meeting());
  const std::string coloured = attention_picture(meeting(), {.color = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(coloured, plain);
  EXPECT_EQ(without_colors(coloured), plain);
}

TEST(AttentionPicture, TextCannotControlTheTerminal) {
  const AttentionMatrix matrix{{"\x1b[2J", "\xff\xfe"}, {"a\nb", "\xc2\x9b"}, {1, 0, 0, 1}};
  const std::string picture = attention_picture(matrix);
  EXPECT_TRUE(is_valid_utf8(picture));
  EXPECT_EQ(picture.find('\x1b'), std::string::npos);
  EXPECT_EQ(picture.find("\xc2\x9b"), std::string::npos);
  EXPECT_NE(picture.find("a?b │"), std::string::npos) << picture;
}

TEST(AttentionPicture, CombiningMarksStayWithTheirLetter) {
  const AttentionMatrix matrix{{"e\u0301a"}, {"e\u0301"}, {1}};
  EXPECT_EQ(attention_picture(matrix).find("   e\u0301\n   a\ne\u0301 │██*│ e\u0301a 100%\n"), 0u)
      << attention_picture(matrix);
}

TEST(AttentionPicture, MarksWeightsThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string picture = attention_picture({{"a", "b"}, {"x", "y"}, {nan, 0.5f, nan, nan}});
  EXPECT_NE(picture.find("x │?? ▓▓*│ b 50%\n"), std::string::npos) << picture;
  EXPECT_NE(picture.find("y │?? ?? │\n"), std::string::npos) << picture;
}

TEST(AttentionPicture, EmptyMatricesGiveNoPictureAndWrongSizesAreErrors) {
  EXPECT_EQ(attention_picture({}), "");
  EXPECT_EQ(attention_picture({{"a"}, {}, {}}), "");
  EXPECT_THROW(attention_picture({{"a"}, {"b"}, {}}), Error);
  EXPECT_THROW(merged_into_words({{"a"}, {"b"}, {1, 2}}), Error);
}

TEST(MergedIntoWords, SumsColumnsAndTakesTheRowOfTheFirstLetters) {
  const AttentionMatrix pieces{{"▁서울", "에서", "▁만나", "요", "</s>"},
                               {"▁Let", "'", "s", "▁meet"},
                               {0.1f, 0.2f, 0.3f, 0.3f, 0.1f,  //
                                0.5f, 0.5f, 0.0f, 0.0f, 0.0f,  //
                                0.0f, 0.0f, 0.0f, 1.0f, 0.0f,  //
                                0.0f, 0.1f, 0.8f, 0.1f, 0.0f},
                               LastPiece::end_token};
  const AttentionMatrix words = merged_into_words(pieces);
  EXPECT_EQ(words.sources, (std::vector<std::string>{"서울에서", "만나요", "</s>"}));
  EXPECT_EQ(words.targets, (std::vector<std::string>{"Let's", "meet"}));
  const std::vector<float> expected{0.3f, 0.6f, 0.1f, 0.1f, 0.9f, 0.0f};
  ASSERT_EQ(words.weights.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(words.weights[i], expected[i], 1e-6f) << i;
  }
  for (int row = 0; row < 2; ++row) {
    const auto begin = words.weights.begin() + row * 3;
    EXPECT_NEAR(std::accumulate(begin, begin + 3, 0.0f), 1.0f, 1e-6f);
  }
}

TEST(MergedIntoWords, JoinsDigitsBytesAndSpaceMarks) {
  const auto words = [](std::vector<std::string> pieces) {
    const std::vector<float> weights(pieces.size(), 0.0f);
    return merged_into_words({std::move(pieces), {"x"}, weights}).sources;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words({"▁", "2", "0", "2", "6", "년", "▁", "1", "1", "월"}), (Words{"2026년", "11월"}));
  EXPECT_EQ(words({"▁", "<0xEA>", "<0xB0>", "<0x80>", "▁a"}), (Words{"가", "a"}));
  EXPECT_EQ(words({"<0xEA>", "<0xZZ>"}), (Words{"\uFFFD<0xZZ>"}));
  EXPECT_EQ(words({"a", "b", "▁", "▁c"}), (Words{"ab", "▁", "c"}));
  EXPECT_EQ(words({"서울", "에서"}), (Words{"서울에서"}));
}

}  // namespace
}  // namespace nunchi
