#include "nunchi/views/prediction_picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <sstream>

#include "nunchi/text/unicode.h"
#include "tests/views/some_inspection.h"

namespace nunchi {
namespace {

Inspection continued_text() {
  InspectionShape shape;
  shape.source.clear();
  return some_inspection(shape);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(PredictionPicture, TheAttentionIsTheMeanOfTheLastLayersHeads) {
  const Inspection inspection = continued_text();
  const AttentionMatrix matrix = prediction_attention(inspection, 3);
  ASSERT_EQ(matrix.targets, (std::vector<std::string>{"▁3", "▁PM", "</s>"}));
  ASSERT_EQ(matrix.weights.size(), 3 * matrix.sources.size());
  for (std::size_t row = 0; row < 3; ++row) {
    const auto begin =
        matrix.weights.begin() + static_cast<std::ptrdiff_t>(row * matrix.sources.size());
    EXPECT_NEAR(std::accumulate(begin, begin + std::ssize(matrix.sources), 0.0), 1, 1e-5);
  }
  double expected = 0;
  for (int head = 0; head < 4; ++head) {
    expected +=
        double{inspection.head({"decoder", 1, "self_attention", head})->weights.at(6, 2)} / 4;
  }
  EXPECT_NEAR(matrix.weights[matrix.sources.size() + 2], expected, 1e-6);
}

TEST(PredictionPicture, HasALineForEachStepOrEachToken) {
  const Inspection inspection = continued_text();
  const std::string many = prediction_picture(inspection, 0, {.width = 100});
  EXPECT_NE(many.find("▁Let's"), std::string::npos);
  EXPECT_NE(many.find("60.0%  other 30.0%  <third>  5.0%"), std::string::npos) << many;
  const std::string few = prediction_picture(inspection, 1, {.width = 60});
  EXPECT_NE(few.find("other "), std::string::npos) << few;
  EXPECT_NE(few.find(" 30.0%\n"), std::string::npos) << few;
}

TEST(PredictionPicture, FitsTheWidthAndHasColorsOnlyWhenAsked) {
  const Inspection inspection = continued_text();
  for (const int width : {40, 61, 80, 130}) {
    const std::string picture = prediction_picture(inspection, 0, {.width = width});
    EXPECT_EQ(picture.find('\x1b'), std::string::npos);
    for (const std::string& line : lines_of(picture)) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
  EXPECT_NE(prediction_picture(inspection, 0, {.color = true}).find('\x1b'), std::string::npos);
}

TEST(PredictionPicture, IsEmptyWithoutStepsAndBoundedForLongTexts) {
  EXPECT_EQ(prediction_picture({}), "");
  EXPECT_TRUE(prediction_attention({}).weights.empty());
  InspectionShape shape{.source = {}, .target = std::vector<std::string>(300, "낱말")};
  EXPECT_LT(lines_of(prediction_picture(some_inspection(shape))).size(), 5'000u);
  EXPECT_EQ(prediction_attention(some_inspection(shape)).targets.size(), 60u);
}

TEST(PredictionPicture, HostileTextsAndNumbersDoNotReachTheTerminal) {
  InspectionShape shape{.source = {}, .target = {"\x1b[2J", "\xFF", "a\nb", "שלום"}};
  Inspection inspection = some_inspection(shape);
  inspection.steps[0].chosen.probability = NAN;
  inspection.steps[0].best[1].probability = INFINITY;
  const std::string picture = prediction_picture(inspection);
  EXPECT_EQ(picture.find('\x1b'), std::string::npos);
  EXPECT_TRUE(is_valid_utf8(picture));
}

}  // namespace
}  // namespace nunchi
