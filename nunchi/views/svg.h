// Drawings as SVG files that slide programs, browsers and screen readers understand.
//
//   Svg svg(200, 100, "Largest weights");
//   svg.rect({10, 10, 120, 20}, {.fill = "#1a609f"}, "서울에서: 81%");
//   svg.text({10, 50}, "서울에서", {.size = 12});
//   {
//     const auto axis = svg.group({{"transform", "translate(0 90)"}}, "axis");
//     svg.line({0, 0}, {200, 0}, {});
//   }
//   write(svg.document());
//
// LibreOffice Impress and others ignore style sheets, scripts, `dominant-baseline` and CSS
// variables, so an element has plain presentation attributes only, a text is placed by its
// baseline, and the background is a rectangle.
//
// Any text is allowed, also from a hostile file: invalid UTF-8, characters that XML forbids, and
// characters that change the direction of text become U+FFFD; markup is escaped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nunchi {

// Fonts with Hangul, for the systems that have them, then any other.
inline constexpr std::string_view kSvgFonts =
    "Noto Sans KR, Noto Sans CJK KR, Apple SD Gothic Neo, Malgun Gothic, NanumGothic, "
    "DejaVu Sans, sans-serif";
// Fonts of equal widths, for numbers in columns.
inline constexpr std::string_view kSvgMonospaceFonts =
    "Noto Sans Mono CJK KR, D2Coding, Consolas, Menlo, DejaVu Sans Mono, monospace";

struct SvgPoint {
  double x = 0, y = 0;
};

struct SvgBox {
  double x = 0, y = 0, width = 0, height = 0;
};

// An attribute's value. Numbers are written with at most three decimals, whatever the locale; one
// that is not finite throws Error.
class SvgValue {
 public:
  SvgValue(double number);          // NOLINT(google-explicit-constructor): {{"x", 1.5}}
  SvgValue(int number);             // NOLINT(google-explicit-constructor)
  SvgValue(std::string_view text);  // NOLINT(google-explicit-constructor)
  SvgValue(std::string text);       // NOLINT(google-explicit-constructor)
  SvgValue(const char* text);       // NOLINT(google-explicit-constructor)

  const std::string& text() const { return text_; }

 private:
  std::string text_;  // not yet escaped
};

struct SvgAttribute {
  std::string_view name;
  SvgValue value;
};
using SvgAttributes = std::vector<SvgAttribute>;

// Colours of shapes. An empty fill or stroke is none.
struct SvgPaint {
  std::string_view fill = {};
  std::string_view stroke = {};
  double stroke_width = 1;
  std::string_view dashes = {};  // "4 2": as stroke-dasharray; empty for a solid line
  double opacity = 1;
  double radius = 0;  // of a rectangle's corners
};

struct SvgStroke {
  std::string_view color = "#1b2027";
  double width = 1;
  std::string_view dashes = {};
  double opacity = 1;
};

enum class SvgAnchor { start, middle, end };

struct SvgTextStyle {
  double size = 12;
  SvgAnchor anchor = SvgAnchor::start;
  std::string_view fill = "#1b2027";
  bool bold = false;
  bool monospace = false;
  double rotation = 0;  // degrees, clockwise, about the text's point
};

class Svg {
 public:
  // Belongs to what is drawn while it exists.
  class Group {
   public:
    explicit Group(Svg& svg) : svg_(&svg) {}
    ~Group() { svg_->end_group(); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    Svg* svg_;
  };

  // A drawing with a white background. Screen readers say the title and the description. Throws
  // Error unless both sizes are above 0 and at most a million.
  Svg(double width, double height, std::string_view title, std::string_view description = {});

  void rect(const SvgBox& box, const SvgPaint& paint, std::string_view title = {});
  void circle(SvgPoint center, double radius, const SvgPaint& paint, std::string_view title = {});
  void line(SvgPoint from, SvgPoint to, const SvgStroke& stroke, std::string_view title = {});
  // Nothing for fewer than two points.
  void polyline(std::span<const SvgPoint> points, const SvgStroke& stroke,
                std::string_view title = {});
  // `commands` are those of the attribute d; svg_number() writes the numbers.
  void path(std::string_view commands, const SvgPaint& paint, std::string_view title = {});
  // `at` is the start, middle or end of the text's baseline. Spaces are kept.
  void text(SvgPoint at, std::string_view text, const SvgTextStyle& style = {});

  // Any other element. Names must be XML names; they are not escaped.
  void element(std::string_view name, const SvgAttributes& attributes, std::string_view title = {});

  // What is drawn until the group ends belongs to it.
  [[nodiscard]] Group group(const SvgAttributes& attributes = {}, std::string_view title = {});

  double width() const { return width_; }
  double height() const { return height_; }

  // The file. Throws Error while a group is open.
  std::string document() const;

 private:
  void open(std::string_view name, const SvgAttributes& attributes);
  void close(std::string_view name, std::string_view title);
  void end_group();

  double width_, height_;
  int open_groups_ = 0;
  std::string text_;
};

// A number with at most three decimals and no trailing zeros. Throws Error unless it is finite.
std::string svg_number(double number);

// The text with markup escaped, for attributes and content.
std::string svg_escaped(std::string_view text);

// An estimate of a text's width in kSvgFonts, a little too large rather than too small. Bold text
// is about a tenth wider.
double svg_text_width(std::string_view text, double size);

// The text, shortened with an ellipsis where its estimated width is above `width`.
std::string svg_fitted(std::string_view text, double width, double size);

// Where the baseline of a text must be for its letters to be centred at y.
inline double svg_baseline(double y, double size) { return y + 0.36 * size; }

}  // namespace nunchi
