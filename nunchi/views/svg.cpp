#include "nunchi/views/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"
#include "nunchi/views/columns.h"

namespace nunchi {
namespace {

constexpr double kMaxSize = 1e6;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Whether the character may stand in a drawing: XML forbids most control characters and the
// non-characters U+FFFE and U+FFFF; overrides and isolates would reorder the text after them.
bool is_allowed(char32_t character) {
  if (character < 0x20 || (character >= 0x7F && character < 0xA0)) return false;
  if (character == 0x200E || character == 0x200F || character == 0x2028 || character == 0x2029 ||
      (character >= 0x202A && character <= 0x202E) ||
      (character >= 0x2066 && character <= 0x2069)) {
    return false;
  }
  return (character & 0xFFFEu) != 0xFFFEu;
}

SvgAttributes painted(SvgAttributes attributes, const SvgPaint& paint) {
  attributes.push_back({"fill", paint.fill.empty() ? "none" : paint.fill});
  if (!paint.stroke.empty()) {
    attributes.push_back({"stroke", paint.stroke});
    if (paint.stroke_width != 1) attributes.push_back({"stroke-width", paint.stroke_width});
  }
  if (!paint.dashes.empty()) attributes.push_back({"stroke-dasharray", paint.dashes});
  if (paint.opacity != 1) attributes.push_back({"opacity", paint.opacity});
  return attributes;
}

SvgPaint paint_of(const SvgStroke& stroke) {
  return {.stroke = stroke.color,
          .stroke_width = stroke.width,
          .dashes = stroke.dashes,
          .opacity = stroke.opacity};
}

}  // namespace

std::string svg_number(double number) {
  if (!std::isfinite(number)) throw Error("svg: a number of the drawing is not finite.");
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_escaped(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t character = take_character(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    switch (character) {
      case U'&':
        escaped += "&amp;";
        break;
      case U'<':
        escaped += "&lt;";
        break;
      case U'>':
        escaped += "&gt;";
        break;
      case U'"':
        escaped += "&quot;";
        break;
      default:
        escaped += is_allowed(character) && character != 0xFFFD ? bytes : kReplacement;
    }
  }
  return escaped;
}

double svg_text_width(std::string_view text, double size) {
  // A Latin letter is about half as wide as high, a Hangul syllable 0.92 times. "▁", which marks
  // the start of a word in pieces, is wide in fonts of East Asia.
  constexpr double kNarrow = 0.56, kWide = 0.98;
  double width = 0;
  for (const std::string& glyph : glyphs_of(text)) {
    width += (display_width(glyph) > 1 || glyph == "▁" ? kWide : kNarrow) * size;
  }
  return width;
}

std::string svg_fitted(std::string_view text, double width, double size) {
  if (svg_text_width(text, size) <= width) return repaired_utf8(text);
  const double room = width - svg_text_width(kEllipsis, size);
  std::string fitted;
  double used = 0;
  for (const std::string& glyph : glyphs_of(text)) {
    used += svg_text_width(glyph, size);
    if (used > room) break;
    fitted += glyph;
  }
  return fitted + std::string(kEllipsis);
}

SvgValue::SvgValue(double number) : text_(svg_number(number)) {}
SvgValue::SvgValue(int number) : text_(std::to_string(number)) {}
SvgValue::SvgValue(std::string_view text) : text_(text) {}
SvgValue::SvgValue(std::string text) : text_(std::move(text)) {}
SvgValue::SvgValue(const char* text) : text_(text) {}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : width_(width), height_(height) {
  if (!(width > 0 && width <= kMaxSize && height > 0 && height <= kMaxSize)) {
    throw Error("svg: a drawing's width and height must be above 0 and at most a million.");
  }
  const std::string w = svg_number(width), h = svg_number(height);
  text_ = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"{2}\" role=\"img\" aria-labelledby=\"{3}\">\n"
      "<title id=\"title\">{4}</title>\n",
      w, h, kSvgFonts, description.empty() ? "title" : "title description", svg_escaped(title));
  if (!description.empty()) {
    text_ += fmt::format("<desc id=\"description\">{}</desc>\n", svg_escaped(description));
  }
  rect({0, 0, width, height}, {.fill = "#ffffff"});
}

void Svg::open(std::string_view name, const SvgAttributes& attributes) {
  text_ += '<';
  text_ += name;
  for (const SvgAttribute& attribute : attributes) {
    text_ += ' ';
    text_ += attribute.name;
    text_ += "=\"";
    text_ += svg_escaped(attribute.value.text());
    text_ += '"';
  }
}

void Svg::close(std::string_view name, std::string_view title) {
  if (title.empty()) {
    text_ += "/>\n";
  } else {
    text_ += fmt::format("><title>{}</title></{}>\n", svg_escaped(title), name);
  }
}

void Svg::element(std::string_view name, const SvgAttributes& attributes, std::string_view title) {
  open(name, attributes);
  close(name, title);
}

void Svg::rect(const SvgBox& box, const SvgPaint& paint, std::string_view title) {
  SvgAttributes attributes{
      {"x", box.x}, {"y", box.y}, {"width", box.width}, {"height", box.height}};
  if (paint.radius > 0) attributes.push_back({"rx", paint.radius});
  element("rect", painted(std::move(attributes), paint), title);
}

void Svg::circle(SvgPoint center, double radius, const SvgPaint& paint, std::string_view title) {
  element("circle", painted({{"cx", center.x}, {"cy", center.y}, {"r", radius}}, paint), title);
}

void Svg::line(SvgPoint from, SvgPoint to, const SvgStroke& stroke, std::string_view title) {
  element("line",
          painted({{"x1", from.x}, {"y1", from.y}, {"x2", to.x}, {"y2", to.y}}, paint_of(stroke)),
          title);
}

void Svg::polyline(std::span<const SvgPoint> points, const SvgStroke& stroke,
                   std::string_view title) {
  if (points.size() < 2) return;
  std::string list;
  for (const SvgPoint& point : points) {
    if (!list.empty()) list += ' ';
    list += svg_number(point.x) + "," + svg_number(point.y);
  }
  SvgAttributes attributes = painted({{"points", list}}, paint_of(stroke));
  attributes.push_back({"stroke-linejoin", "round"});
  element("polyline", attributes, title);
}

void Svg::path(std::string_view commands, const SvgPaint& paint, std::string_view title) {
  element("path", painted({{"d", commands}}, paint), title);
}

void Svg::text(SvgPoint at, std::string_view text, const SvgTextStyle& style) {
  SvgAttributes attributes{{"x", at.x}, {"y", at.y}, {"font-size", style.size}};
  if (style.anchor != SvgAnchor::start) {
    attributes.push_back({"text-anchor", style.anchor == SvgAnchor::middle ? "middle" : "end"});
  }
  attributes.push_back({"fill", style.fill});
  if (style.bold) attributes.push_back({"font-weight", "bold"});
  if (style.monospace) attributes.push_back({"font-family", kSvgMonospaceFonts});
  if (style.rotation != 0) {
    attributes.push_back({"transform", fmt::format("rotate({} {} {})", svg_number(style.rotation),
                                                   svg_number(at.x), svg_number(at.y))});
  }
  attributes.push_back({"xml:space", "preserve"});
  open("text", attributes);
  text_ += fmt::format(">{}</text>\n", svg_escaped(text));
}

Svg::Group Svg::group(const SvgAttributes& attributes, std::string_view title) {
  open("g", attributes);
  text_ += ">\n";
  if (!title.empty()) text_ += fmt::format("<title>{}</title>\n", svg_escaped(title));
  ++open_groups_;
  return Group(*this);
}

void Svg::end_group() {
  text_ += "</g>\n";
  --open_groups_;
}

std::string Svg::document() const {
  if (open_groups_ > 0) throw Error("svg: a group of the drawing is still open.");
  return text_ + "</svg>\n";
}

}  // namespace nunchi
