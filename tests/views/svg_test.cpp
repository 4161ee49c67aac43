#include "nunchi/views/svg.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"
#include "tests/views/xml.h"

namespace nunchi {
namespace {

// Texts that a model, a tokenizer or a user may bring.
const std::vector<std::string> kHostileTexts{
    "</script><script>alert(1)</script>",
    "</text></svg>",
    "a & b &amp; &#0; &unknown;",
    "\"quoted\" 'too' <b x='1'>",
    "]]> <!-- --> <![CDATA[x]]> <?php ?>",
    std::string("zero\0byte", 9),
    "\x01\x02\x08\x0B\x0C\x0E\x1F\x7F bell\a",
    "tab\tnew\nline\r",
    "\xC2\x80\xC2\x9F C1 controls",
    "invalid \xFF\xFE \xC3 \xED\xA0\x80 \xF4\x90\x80\x80 end",
    "\xEF\xBF\xBE and \xEF\xBF\xBF, \xF0\x9F\xBF\xBE",
    std::string("\xE2\x80") + "\xAE override \xE2\x81" + "\xA6 isolate",
    "שלום עולם مرحبا",
    "한국어 \xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB NFD 👩‍👩‍👧‍👦 e\xCC\x81",
};

std::string text_of(const std::string& text) {
  Svg svg(100, 100, "test");
  svg.text({1, 2}, text);
  return XmlReader::read(svg.document()).all("text").at(0)->text;
}

TEST(SvgDrawing, IsWellFormedWhateverTheTexts) {
  for (const std::string& hostile : kHostileTexts) {
    SCOPED_TRACE(hostile);
    Svg svg(100, 50, hostile, hostile);
    svg.text({1, 2}, hostile, {.bold = true, .monospace = true, .rotation = 30});
    svg.rect({1, 2, 3, 4}, {.fill = hostile, .stroke = hostile}, hostile);
    svg.circle({1, 2}, 3, {.fill = "#fff"}, hostile);
    svg.line({0, 0}, {1, 1}, {.dashes = hostile}, hostile);
    svg.path(hostile, {}, hostile);
    {
      const auto group = svg.group({{"class", hostile}}, hostile);
      svg.element("ellipse", {{"data-x", hostile}}, hostile);
    }
    const XmlElement root = XmlReader::read(svg.document());
    EXPECT_EQ(root.name, "svg");
    EXPECT_EQ(root.all("script").size(), 0u);
    EXPECT_EQ(root.all("title").size(), 7u);
    EXPECT_EQ(root.all("g").at(0)->children.size(), 2u);  // the title and the ellipse
  }
}

TEST(SvgDrawing, TextIsKeptUnlessItIsForbidden) {
  EXPECT_EQ(text_of("a & b < c > \"d\" 'e'"), "a & b < c > \"d\" 'e'");
  EXPECT_EQ(text_of("</script> &amp;"), "</script> &amp;");
  EXPECT_EQ(text_of("  서울에서 👋 שלום"), "  서울에서 👋 שלום");
  EXPECT_EQ(text_of("a\x01\nb"), "a\uFFFD\uFFFDb");
  EXPECT_EQ(text_of("\xFFz"), "\uFFFDz");
  EXPECT_EQ(text_of(std::string("\xE2\x80") + "\xAEx"), "\uFFFDx");  // would reverse what follows
}

TEST(SvgDrawing, NumbersAreShortInEveryLocale) {
  EXPECT_EQ(svg_number(0), "0");
  EXPECT_EQ(svg_number(-0.0001), "0");
  EXPECT_EQ(svg_number(10), "10");
  EXPECT_EQ(svg_number(1.5), "1.5");
  EXPECT_EQ(svg_number(-12.3456), "-12.346");
  EXPECT_EQ(svg_number(1234567.0), "1234567");

  // A decimal comma and grouped digits, as in German.
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
  EXPECT_EQ(svg_number(1234.5), "1234.5");
  std::locale::global(before);
}

TEST(SvgDrawing, RefusesNumbersAndSizesThatAreNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  Svg svg(10, 10, "test");
  EXPECT_THROW(svg.rect({0, std::nan(""), 1, 1}, {}), Error);
  EXPECT_THROW(svg.line({0, 0}, {infinity, 0}, {}), Error);
  EXPECT_THROW(Svg(0, 10, "test"), Error);
  EXPECT_THROW(Svg(10, infinity, "test"), Error);
  EXPECT_THROW(Svg(10, std::nan(""), "test"), Error);
  EXPECT_THROW(Svg(2e6, 10, "test"), Error);
}

TEST(SvgDrawing, GroupsNestAndMustBeClosed) {
  Svg svg(10, 10, "test");
  {
    const auto outer = svg.group({{"transform", "translate(1 2)"}}, "outer");
    {
      const auto inner = svg.group();
      svg.circle({1, 1}, 1, {});
    }
    svg.rect({0, 0, 1, 1}, {});
    EXPECT_THROW(svg.document(), Error);
  }
  const XmlElement root = XmlReader::read(svg.document());
  const XmlElement& outer = *root.all("g").at(0);
  ASSERT_EQ(outer.children.size(), 3u);
  EXPECT_EQ(outer.children[0].text, "outer");
  EXPECT_EQ(outer.children[1].children.at(0).name, "circle");
  EXPECT_EQ(outer.children[2].name, "rect");
}

TEST(SvgDrawing, HasATitleASizeAndALightBackground) {
  const XmlElement root = XmlReader::read(Svg(120.5, 40, "Weights", "of one head").document());
  EXPECT_EQ(root.attributes.at("viewBox"), "0 0 120.5 40");
  EXPECT_EQ(root.attributes.at("role"), "img");
  EXPECT_EQ(root.attributes.at("aria-labelledby"), "title description");
  EXPECT_EQ(root.all("title").at(0)->text, "Weights");
  EXPECT_EQ(root.all("desc").at(0)->text, "of one head");
  EXPECT_EQ(root.all("rect").at(0)->attributes.at("fill"), "#ffffff");
  EXPECT_NE(root.attributes.at("font-family").find("Malgun Gothic"), std::string::npos);
}

TEST(SvgDrawing, FittedTextHasTheWidthAskedFor) {
  EXPECT_EQ(svg_fitted("서울", 100, 12), "서울");
  for (const std::string text : {"서울에서 만나요", "a long English sentence", "שלום עולם"}) {
    for (double width = 15; width < 150; width += 7) {
      const std::string shown = svg_fitted(text, width, 12);
      EXPECT_LE(svg_text_width(shown, 12), width) << shown;
      EXPECT_TRUE(is_valid_utf8(shown));
      EXPECT_TRUE(shown == text || shown.ends_with("…"));
    }
  }
  EXPECT_GT(svg_text_width("한글", 12), svg_text_width("ab", 12));
}

TEST(SvgDrawing, APolylineNeedsTwoPoints) {
  Svg svg(10, 10, "test");
  const std::vector<SvgPoint> points{{0, 0}, {1.5, 2}};
  svg.polyline(std::span(points).first(1), {});
  svg.polyline(points, {});
  const XmlElement root = XmlReader::read(svg.document());
  ASSERT_EQ(root.all("polyline").size(), 1u);
  EXPECT_EQ(root.all("polyline")[0]->attributes.at("points"), "0,0 1.5,2");
}

}  // namespace
}  // namespace nunchi
