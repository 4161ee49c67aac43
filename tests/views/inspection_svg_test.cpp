#include "nunchi/views/inspection_svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nunchi/base/error.h"
#include "tests/views/some_inspection.h"
#include "tests/views/xml.h"

namespace nunchi {
namespace {

std::string text_in(const XmlElement& root) {
  std::string all;
  for (const XmlElement* text : root.all("text")) all += text->text + "\n";
  return all;
}

XmlElement drawing(const Inspection& inspection, const InspectionSelection& selection) {
  return XmlReader::read(inspection_svg(inspection, selection));
}

TEST(InspectionSvg, EveryViewIsADrawing) {
  const Inspection inspection = some_inspection();
  for (const auto& [name, view] : kInspectionViews) {
    SCOPED_TRACE(name);
    const XmlElement root = drawing(inspection, {.view = view});
    EXPECT_GT(root.all("text").size(), 3u);
    EXPECT_GT(std::stod(root.attributes.at("width")), 100);
  }
}

TEST(InspectionSvg, WithoutAViewItHasAllOfThem) {
  const Inspection inspection = some_inspection();
  const std::string all = text_in(drawing(inspection, {}));
  for (const char* heading : {"From the tokens to the probabilities", "Cross-attention",
                              "Query · Key", "The likeliest tokens of each step",
                              "Positions: sinusoidal", "Normalisation", "Beam search"}) {
    EXPECT_NE(all.find(heading), std::string::npos) << heading;
  }
}

TEST(InspectionSvg, ASelectedHeadIsDrawnWithItsWeights) {
  const Inspection inspection = some_inspection();
  const InspectionSelection selection{
      .view = InspectionView::attention, .attention = "cross", .layer = 1, .head = 2};
  const std::string all = text_in(drawing(inspection, selection));
  EXPECT_NE(all.find("decoder, layer 2, cross-attention, head 3"), std::string::npos) << all;
  const InspectedHead* head = inspection.head({"decoder", 1, "cross_attention", 2});
  ASSERT_NE(head, nullptr);
  const double largest = 100 * double{head->weights.at(0, 1)};
  EXPECT_NE(all.find("\n" + std::to_string(std::lround(largest)) + "\n"), std::string::npos) << all;
  for (const std::string& piece : inspection.source.pieces) {
    EXPECT_NE(all.find(piece + "\n"), std::string::npos) << piece;
  }
}

TEST(InspectionSvg, TheArithmeticShowsTheNumbersOfTheQuery) {
  const Inspection inspection = some_inspection();
  const InspectionSelection selection{.view = InspectionView::arithmetic,
                                      .attention = "decoder",
                                      .layer = 0,
                                      .head = 1,
                                      .query = 2};
  const std::string all = text_in(drawing(inspection, selection));
  const InspectedPlace place{"decoder", 0, "self_attention", 1};
  EXPECT_NE(all.find("The sum of query 3 “▁in”"), std::string::npos) << all;
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", double{inspection.tensor("scores", place)->at(2, 1)});
  EXPECT_NE(all.find("Q3 · K2"), std::string::npos);
  EXPECT_NE(all.find(text), std::string::npos) << text;
  std::snprintf(text, sizeof text, "%.3f", double{inspection.head(place)->weights.at(2, 1)});
  EXPECT_NE(all.find(text), std::string::npos) << text;
  EXPECT_NE(all.find("-∞"), std::string::npos);  // the mask
  EXPECT_NE(all.find("Context vector"), std::string::npos);
}

TEST(InspectionSvg, TheWalkHasTheNormWhereTheModelHasIt) {
  Inspection inspection = some_inspection();
  for (const std::string placement : {"pre", "post"}) {
    inspection.model.norm = placement;
    const std::string all = text_in(drawing(inspection, {.view = InspectionView::walk}));
    const std::size_t norm = all.find("\nNorm "), attention = all.find("\nSelf-attention\n");
    ASSERT_NE(norm, std::string::npos);
    ASSERT_NE(attention, std::string::npos);
    EXPECT_EQ(norm < attention, placement == "pre") << all;
  }
}

TEST(InspectionSvg, HostileTextsAreEscaped) {
  InspectionShape shape;
  shape.source = {"</svg><script>alert(1)</script>",
                  "\xFF\xFE",
                  "\x01\x1b[31m",
                  std::string("\xE2\x80") + "\xAE rtl",
                  std::string(5000, 'w'),
                  "",
                  "👩‍👩‍👧‍👦"};
  shape.target = {"&amp;", "\"'<>", "שלום", std::string("a\0b", 3), "]]>"};
  const Inspection inspection = some_inspection(shape);
  for (const auto& [name, view] : kInspectionViews) {
    SCOPED_TRACE(name);
    const std::string file = inspection_svg(inspection, {.view = view});
    EXPECT_EQ(XmlReader::read(file).all("script").size(), 0u);
    EXPECT_LT(file.size(), 1'000'000u);
  }
}

TEST(InspectionSvg, LongTextsAreBounded) {
  InspectionShape shape{.source = std::vector<std::string>(400, "낱말"),
                        .target = std::vector<std::string>(400, "word"),
                        .layers = 2,
                        .heads = 4};
  const Inspection inspection = some_inspection(shape);
  for (const auto& [name, view] : kInspectionViews) {
    SCOPED_TRACE(name);
    const std::string file = inspection_svg(inspection, {.view = view});
    XmlReader::read(file);
    EXPECT_LT(file.size(), 3'000'000u);
  }
}

TEST(InspectionSvg, NumbersThatAreNotFiniteAreDrawnAsNothing) {
  Inspection inspection = some_inspection();
  for (InspectedHead& head : inspection.attention) head.weights.values[1] = NAN;
  for (InspectedNorm& norm : inspection.norms) norm.deviation_before[0] = INFINITY;
  for (InspectedTensor& tensor : inspection.tensors) tensor.values.values[0] = NAN;
  inspection.positions->rows.values[3] = NAN;
  inspection.steps[0].best[0].probability = NAN;
  EXPECT_NO_THROW(drawing(inspection, {}));
}

TEST(InspectionSvg, ATextWithoutASourceHasOneColumnAndNoCrossAttention) {
  InspectionShape shape;
  shape.source.clear();
  const std::string all = text_in(drawing(some_inspection(shape), {}));
  EXPECT_EQ(all.find("Encoder"), std::string::npos);
  EXPECT_EQ(all.find("Cross-attention"), std::string::npos);
  EXPECT_NE(all.find("Masked self-attention"), std::string::npos);
}

TEST(InspectionSvg, APlaceThatDoesNotExistIsAnError) {
  const Inspection inspection = some_inspection();
  EXPECT_THROW(inspection_svg(inspection, {.layer = 7}), UsageError);
  EXPECT_THROW(inspection_svg(inspection, {.attention = "encoder", .query = 99}), UsageError);
  Inspection without = inspection;
  without.beam.reset();
  EXPECT_THROW(inspection_svg(without, {.view = InspectionView::beam}), UsageError);
}

TEST(InspectionSvg, AnEmptyInspectionIsAnEmptySheet) {
  EXPECT_NO_THROW(XmlReader::read(inspection_svg({}, {})));
}

}  // namespace
}  // namespace nunchi
