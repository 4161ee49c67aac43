#include "nunchi/views/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "nunchi/base/error.h"
#include "nunchi/views/svg.h"

namespace nunchi {
namespace {

constexpr std::string_view kInk = "#1b2027", kGrid = "#d9dde2", kFaint = "#5a6470";

// Dark to light, so that neighbours differ in grey too.
constexpr std::array<std::string_view, 8> kColors = {"#12355b", "#d1495b", "#3d8361", "#e8a33d",
                                                     "#6f4a8e", "#6ba4c8", "#8c5a2b", "#9aa3ad"};
constexpr std::array<std::string_view, 8> kDashes = {"", "7 3", "2 2.5", "9 3 2 3",
                                                     "", "4 4", "1 3",   "12 4"};
constexpr std::array<std::string_view, 6> kBarColors = {"#12355b", "#6ba4c8", "#d3e3ee",
                                                        "#8c2f39", "#d58a8f", "#f3dcdd"};

std::string number_label(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 10000) return fmt::format("{:.3g}k", value / 1000);
  if (size > 0 && size < 1e-3) return fmt::format("{:.0e}", value);
  return fmt::format("{:.4g}", value);
}

// A bar's value: shares and weights with two decimals, others with three digits.
std::string value_label(double value, double highest) {
  return highest <= 1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

// Finite values of all lines or bars.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::set<double> values = {};
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
    values.insert(value);
  }
  // The values themselves if they are few: a measurement at 256, 512, 1024 … has ticks there.
  std::vector<double> values_or(std::vector<double> ticks, int count) const {
    if (values.empty() || std::ssize(values) > count) return ticks;
    return {values.begin(), values.end()};
  }
  bool empty() const { return low > high; }
};

// Maps the values of an axis to coordinates.
class Scale {
 public:
  Scale(const Axis& axis, Range range, double from, double to)
      : logarithmic_(axis.logarithmic), from_(from), to_(to) {
    if (range.empty()) range = {.low = logarithmic_ ? 1.0 : 0.0, .high = 10};
    if (logarithmic_ && range.low <= 0) throw Error("a logarithmic axis needs values above 0.");
    low_ = axis.low.value_or(range.low);
    high_ = axis.high.value_or(range.high);
    if (logarithmic_) {
      low_ = std::log10(low_);
      high_ = std::log10(high_);
      const double margin = std::max(0.03 * (high_ - low_), 0.05);
      if (!axis.low) low_ -= margin;
      if (!axis.high) high_ += margin;
    } else {
      if (high_ <= low_) high_ = low_ + std::max(1.0, std::abs(low_));
      const double margin = 0.04 * (high_ - low_);
      if (!axis.low && low_ != 0) low_ = low_ > 0 && low_ < margin * 4 ? 0 : low_ - margin;
      if (!axis.high) high_ += margin;
    }
  }

  double operator()(double value) const {
    const double v = logarithmic_ ? std::log10(value) : value;
    return from_ + (v - low_) / (high_ - low_) * (to_ - from_);
  }
  bool contains(double value) const {
    if (!std::isfinite(value) || (logarithmic_ && value <= 0)) return false;
    const double v = logarithmic_ ? std::log10(value) : value, slack = 1e-9 * (high_ - low_);
    return v >= low_ - slack && v <= high_ + slack;
  }
  std::vector<double> ticks(int count) const {
    if (!logarithmic_) return axis_ticks(low_, high_, count);
    std::vector<double> ticks;
    const double decades = high_ - low_;
    const auto first = static_cast<int>(std::floor(low_)),
               last = static_cast<int>(std::floor(high_));
    for (int power = first; power <= last; ++power) {
      for (const double factor : {1.0, 2.0, 4.0}) {
        if (factor > 1 && decades > 2.2) continue;
        const double tick = factor * std::pow(10.0, power);
        if (contains(tick)) ticks.push_back(tick);
      }
    }
    while (std::ssize(ticks) > 2 * count) {
      std::vector<double> half;
      for (std::size_t i = 0; i < ticks.size(); i += 2) half.push_back(ticks[i]);
      ticks = half;
    }
    return ticks;
  }
  double zero() const { return logarithmic_ ? low_ : std::clamp(0.0, low_, high_); }

 private:
  bool logarithmic_;
  double from_, to_, low_ = 0, high_ = 1;
};

// The marker of a line: a different shape for each.
void marker(Svg& svg, SvgPoint at, std::size_t kind, double r) {
  const std::string_view color = kColors[kind % kColors.size()];
  const SvgPaint filled{.fill = color},
      open{.fill = "#ffffff", .stroke = color, .stroke_width = 1.6};
  const auto polygon = [&](std::initializer_list<SvgPoint> points, const SvgPaint& paint) {
    std::string path;
    for (const SvgPoint& p : points) {
      path += (path.empty() ? "M" : "L") + svg_number(at.x + p.x * r) + " " +
              svg_number(at.y + p.y * r);
    }
    svg.path(path + "Z", paint);
  };
  switch (kind % 6) {
    case 0:
      return svg.circle(at, r, filled);
    case 1:
      return svg.rect({at.x - r, at.y - r, 2 * r, 2 * r}, open);
    case 2:
      return polygon({{0, -1.3}, {1.2, 0.9}, {-1.2, 0.9}}, filled);
    case 3:
      return polygon({{0, -1.4}, {1.4, 0}, {0, 1.4}, {-1.4, 0}}, open);
    case 4:
      return svg.rect({at.x - r, at.y - r, 2 * r, 2 * r}, filled);
    default:
      return svg.circle(at, r, open);
  }
}

// Many points would hide the line.
bool has_markers(const Line& line) { return line.x.size() <= 30; }

// Draws one chart into a box.
class Panel {
 public:
  Panel(Svg& svg, const SvgBox& box, double font) : svg_(svg), box_(box), font_(font) {}

  void operator()(const LineChart& chart) {
    title(chart.title);
    Range xs, ys;
    std::vector<std::string> names;
    for (const Line& line : chart.lines) {
      if (line.x.size() != line.y.size()) throw Error("a line needs as many x as y values.");
      for (const double x : line.x) xs.add(x);
      for (const double y : line.y) {
        if (!chart.y.logarithmic || y > 0) ys.add(y);
      }
      names.push_back(line.name);
    }
    const double legend = legend_height(names);
    plot_ = {box_.x + 5.2 * font_, box_.y + 2.2 * font_ + legend, box_.width - 6.4 * font_,
             box_.height - 5.8 * font_ - legend};
    const Scale x(chart.x, xs, plot_.x, plot_.x + plot_.width);
    const Scale y(chart.y, ys, plot_.y + plot_.height, plot_.y);
    x_axis(chart.x, x, xs);
    y_axis(chart.y, y);
    for (std::size_t i = 0; i < chart.lines.size(); ++i) draw(chart.lines[i], i, x, y);
    draw_legend(names, [&](SvgPoint at, std::size_t i) {
      svg_.line({at.x, at.y}, {at.x + 2.4 * font_, at.y},
                {.color = kColors[i % kColors.size()],
                 .width = 0.15 * font_,
                 .dashes = kDashes[i % kDashes.size()]});
      if (has_markers(chart.lines[i])) marker(svg_, {at.x + 1.2 * font_, at.y}, i, 0.26 * font_);
    });
  }

  void operator()(const BarChart& chart) {
    title(chart.title);
    Range range;
    std::vector<std::string> names;
    for (const Bars& bars : chart.bars) {
      if (bars.values.size() != chart.categories.size()) {
        throw Error("a bar chart needs one value for each category.");
      }
      for (const double value : bars.values) range.add(value);
      names.push_back(bars.name);
    }
    if (!chart.y.logarithmic) range.add(0);
    const double legend = legend_height(names);
    const double plot_width = box_.width - 6.4 * font_;
    const double slot =
        plot_width / static_cast<double>(std::max<std::size_t>(1, chart.categories.size()));
    const Names layout = layout_of(chart.categories, slot);
    const double names_height = (layout == Names::one_line    ? 2.4
                                 : layout == Names::two_lines ? 3.6
                                                              : 4.6) *
                                font_;
    plot_ = {box_.x + 5.2 * font_, box_.y + 2.4 * font_ + legend, plot_width,
             box_.height - 2.6 * font_ - names_height - legend};
    const Scale y(chart.y, range, plot_.y + plot_.height, plot_.y);
    y_axis(chart.y, y);
    const double width =
        0.8 * slot / static_cast<double>(std::max<std::size_t>(1, chart.bars.size()));
    const double base = chart.y.logarithmic ? plot_.y + plot_.height : y(y.zero());
    for (std::size_t c = 0; c < chart.categories.size(); ++c) {
      const double left = plot_.x + slot * (static_cast<double>(c) + 0.1);
      for (std::size_t b = 0; b < chart.bars.size(); ++b) {
        const double value = chart.bars[b].values[c];
        if (!y.contains(value)) continue;
        const double top = y(value), x = left + width * static_cast<double>(b);
        svg_.rect({x, std::min(top, base), width * 0.94, std::max(1.0, std::abs(base - top))},
                  {.fill = kBarColors[b % kBarColors.size()], .stroke = kInk, .stroke_width = 0.6},
                  chart.categories[c] + " " + chart.bars[b].name + ": " + number_label(value));
        if (!chart.print_values) continue;
        const double size = std::min(0.85 * font_, 0.32 * width + 3);
        if (size >= 6) {
          svg_.text({x + 0.47 * width, std::min(top, base) - 0.25 * font_},
                    value_label(value, range.high), {.size = size, .anchor = SvgAnchor::middle});
        }
      }
      draw_category(chart.categories[c], plot_.x + slot * (static_cast<double>(c) + 0.5), layout);
    }
    draw_legend(names, [&](SvgPoint at, std::size_t i) {
      svg_.rect({at.x + 0.9 * font_, at.y - 0.45 * font_, 1.4 * font_, 0.9 * font_},
                {.fill = kBarColors[i % kBarColors.size()], .stroke = kInk, .stroke_width = 0.6});
    });
  }

  void operator()(const HeatMap& map) {
    title(map.title);
    const std::size_t columns = map.columns.size(), rows = map.rows.size();
    if (rows * columns != map.values.size() || map.values.empty()) {
      throw Error("a heat map needs one value for each cell.");
    }
    double names = 0;
    for (const std::string& row : map.rows)
      names = std::max(names, svg_text_width(row, 0.9 * font_));
    const double left = std::min(0.35 * box_.width, names + 2.6 * font_);
    plot_ = {box_.x + left, box_.y + 3.0 * font_, box_.width - left - 5.6 * font_,
             box_.height - 7.0 * font_};
    const double w = plot_.width / static_cast<double>(columns);
    const double h = plot_.height / static_cast<double>(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        const double value = map.values[r * columns + c];
        if (!std::isfinite(value)) continue;
        const double share = std::clamp((value - map.low) / (map.high - map.low), 0.0, 1.0);
        const SvgBox cell{plot_.x + w * static_cast<double>(c),
                          plot_.y + h * static_cast<double>(r), w + 0.2, h + 0.2};
        svg_.rect(cell, {.fill = shade(share)});
        const double size = std::min({0.8 * font_, 0.36 * w, 0.6 * h});
        if (map.print_values && size >= 6) {
          svg_.text(
              {cell.x + w / 2, svg_baseline(cell.y + h / 2, size)}, fmt::format("{:.2f}", value),
              {.size = size, .anchor = SvgAnchor::middle, .fill = share > 0.5 ? "#ffffff" : kInk});
        }
      }
    }
    svg_.rect(plot_, {.stroke = kInk});
    cell_names(map, w, h);
    color_scale(map);
    svg_.text({plot_.x + plot_.width / 2, box_.y + box_.height - 0.6 * font_}, map.x_label,
              {.size = font_, .anchor = SvgAnchor::middle});
    svg_.text({box_.x + font_, plot_.y + plot_.height / 2}, map.y_label,
              {.size = font_, .anchor = SvgAnchor::middle, .rotation = -90});
  }

 private:
  // White to dark blue, monotone in lightness.
  static std::string shade(double share) {
    const auto mix = [&](int light, int dark) {
      return static_cast<int>(std::lround(light + (dark - light) * std::pow(share, 0.8)));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", mix(250, 13), mix(251, 42), mix(252, 84));
  }

  // Smaller where it would not fit.
  void title(const std::string& text) {
    const double room = box_.width - font_, width = svg_text_width(text, 1.1 * font_);
    const double size = std::clamp(1.1 * font_ * room / width, 0.8 * font_, 1.1 * font_);
    svg_.text({box_.x + 0.4 * font_, box_.y + 1.2 * font_}, svg_fitted(text, room, size),
              {.size = size, .bold = true});
  }

  // How the names of categories are set: in one line, the two languages in two lines, or slanted.
  enum class Names : std::uint8_t { one_line, two_lines, slanted };
  static constexpr std::string_view kSeparator = " · ";
  Names layout_of(std::span<const std::string> names, double slot) const {
    const double size = 0.9 * font_;
    bool one = true, two = true;
    for (const std::string& name : names) {
      const std::size_t middle = name.find(kSeparator);
      one = one && svg_text_width(name, size) <= slot;
      two = two && middle != name.npos &&
            std::max(svg_text_width(name.substr(0, middle), size),
                     svg_text_width(name.substr(middle + kSeparator.size()), size)) <= slot;
    }
    return one ? Names::one_line : two ? Names::two_lines : Names::slanted;
  }
  void draw_category(const std::string& name, double x, Names layout) {
    const double y = plot_.y + plot_.height, size = 0.9 * font_;
    if (layout == Names::slanted) {
      svg_.text({x + 0.4 * font_, y + 1.1 * font_}, svg_fitted(name, 4.6 * font_, size),
                {.size = size, .anchor = SvgAnchor::end, .rotation = -40});
      return;
    }
    const std::size_t middle = layout == Names::two_lines ? name.find(kSeparator) : name.size();
    svg_.text({x, y + 1.3 * font_}, name.substr(0, middle),
              {.size = size, .anchor = SvgAnchor::middle});
    if (layout != Names::two_lines) return;
    svg_.text({x, y + 2.5 * font_}, name.substr(middle + kSeparator.size()),
              {.size = size, .anchor = SvgAnchor::middle});
  }

  // The names in rows that fit the width.
  double entry_width(const std::string& name) const {
    return svg_text_width(name, 0.92 * font_) + 4.2 * font_;
  }
  double legend_height(std::span<const std::string> names) const {
    int rows = 0;
    double x = 1e9;
    for (const std::string& name : names) {
      if (name.empty()) continue;
      const double width = entry_width(name);
      if (x + width > box_.width) {
        ++rows;
        x = 0;
      }
      x += width;
    }
    return 1.5 * font_ * rows;
  }
  template <class Symbol>
  void draw_legend(std::span<const std::string> names, const Symbol& symbol) {
    double x = 0, y = box_.y + 2.4 * font_;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      const double width = entry_width(names[i]);
      if (x > 0 && x + width > box_.width) {
        x = 0;
        y += 1.5 * font_;
      }
      symbol({box_.x + x + 0.4 * font_, y}, i);
      svg_.text({box_.x + x + 3.3 * font_, svg_baseline(y, 0.92 * font_)}, names[i],
                {.size = 0.92 * font_});
      x += width;
    }
  }

  void draw(const Line& line, std::size_t i, const Scale& x, const Scale& y) {
    const SvgStroke stroke{.color = kColors[i % kColors.size()],
                           .width = 0.15 * font_,
                           .dashes = kDashes[i % kDashes.size()]};
    std::vector<SvgPoint> points;
    const auto flush = [&] {
      svg_.polyline(points, stroke, line.name);
      if (has_markers(line)) {
        for (const SvgPoint& p : points) marker(svg_, p, i, 0.26 * font_);
      }
      points.clear();
    };
    for (std::size_t k = 0; k < line.x.size(); ++k) {
      if (x.contains(line.x[k]) && y.contains(line.y[k])) {
        points.push_back({x(line.x[k]), y(line.y[k])});
      } else {
        flush();  // a gap where there is no value
      }
    }
    flush();
  }

  void x_axis(const Axis& axis, const Scale& scale, const Range& range) {
    const double bottom = plot_.y + plot_.height;
    const auto count = static_cast<int>(plot_.width / (4.5 * font_));
    for (const double tick :
         axis.logarithmic ? range.values_or(scale.ticks(count), count) : scale.ticks(count)) {
      const double x = scale(tick);
      svg_.line({x, plot_.y}, {x, bottom}, {.color = kGrid});
      svg_.line({x, bottom}, {x, bottom + 4}, {});
      svg_.text({x, bottom + 1.4 * font_}, number_label(tick),
                {.size = 0.9 * font_, .anchor = SvgAnchor::middle});
    }
    svg_.line({plot_.x, bottom}, {plot_.x + plot_.width, bottom}, {});
    svg_.text({plot_.x + plot_.width / 2, bottom + 2.9 * font_},
              svg_fitted(axis.label, box_.width, font_),
              {.size = font_, .anchor = SvgAnchor::middle});
  }

  void y_axis(const Axis& axis, const Scale& scale) {
    for (const double tick : scale.ticks(static_cast<int>(plot_.height / (2.6 * font_)))) {
      const double y = scale(tick);
      svg_.line({plot_.x, y}, {plot_.x + plot_.width, y}, {.color = kGrid});
      svg_.line({plot_.x - 4, y}, {plot_.x, y}, {});
      svg_.text({plot_.x - 0.5 * font_, svg_baseline(y, 0.9 * font_)}, number_label(tick),
                {.size = 0.9 * font_, .anchor = SvgAnchor::end});
    }
    svg_.line({plot_.x, plot_.y}, {plot_.x, plot_.y + plot_.height}, {});
    svg_.text({box_.x + font_, plot_.y + plot_.height / 2},
              svg_fitted(axis.label, plot_.height + 2.5 * font_, font_),
              {.size = font_, .anchor = SvgAnchor::middle, .rotation = -90});
  }

  void cell_names(const HeatMap& map, double w, double h) {
    const double size = 0.9 * font_;
    const auto every = [](double room, double need) {
      return static_cast<std::size_t>(std::max(1.0, std::ceil(need / room)));
    };
    double widest = 0;
    for (const std::string& name : map.columns)
      widest = std::max(widest, svg_text_width(name, size));
    const std::size_t column_step = every(w, std::min(widest + 0.5 * font_, 5 * font_));
    for (std::size_t c = 0; c < map.columns.size(); c += column_step) {
      svg_.text(
          {plot_.x + w * (static_cast<double>(c) + 0.5), plot_.y + plot_.height + 1.3 * font_},
          svg_fitted(map.columns[c], std::max(w * static_cast<double>(column_step), 2 * font_),
                     size),
          {.size = size, .anchor = SvgAnchor::middle});
    }
    const std::size_t row_step = every(h, 1.2 * size);
    for (std::size_t r = 0; r < map.rows.size(); r += row_step) {
      svg_.text(
          {plot_.x - 0.5 * font_, svg_baseline(plot_.y + h * (static_cast<double>(r) + 0.5), size)},
          svg_fitted(map.rows[r], plot_.x - box_.x - 2 * font_, size),
          {.size = size, .anchor = SvgAnchor::end});
    }
  }

  void color_scale(const HeatMap& map) {
    constexpr int kSteps = 40;
    const double x = plot_.x + plot_.width + 1.2 * font_, height = plot_.height;
    for (int i = 0; i < kSteps; ++i) {
      svg_.rect({x, plot_.y + height * (kSteps - 1 - i) / kSteps, font_, height / kSteps + 0.3},
                {.fill = shade((i + 0.5) / kSteps)});
    }
    svg_.rect({x, plot_.y, font_, height}, {.stroke = kInk});
    for (const double tick : axis_ticks(map.low, map.high, 4)) {
      const double y = plot_.y + height * (1 - (tick - map.low) / (map.high - map.low));
      svg_.text({x + 1.3 * font_, svg_baseline(y, 0.85 * font_)}, number_label(tick),
                {.size = 0.85 * font_});
    }
    svg_.text({box_.x + box_.width - 0.3 * font_, plot_.y - 0.65 * font_}, map.value_label,
              {.size = 0.85 * font_, .anchor = SvgAnchor::end, .fill = kFaint});
  }

  Svg& svg_;
  SvgBox box_;
  double font_;
  SvgBox plot_;
};

}  // namespace

LineChart line_chart(std::string title, Axis x, Axis y, std::vector<Line> lines) {
  LineChart chart;
  chart.title = std::move(title);
  chart.x = std::move(x);
  chart.y = std::move(y);
  chart.lines = std::move(lines);
  return chart;
}

BarChart bar_chart(std::string title, std::vector<std::string> categories, Axis y,
                   std::vector<Bars> bars) {
  BarChart chart;
  chart.title = std::move(title);
  chart.categories = std::move(categories);
  chart.y = std::move(y);
  chart.bars = std::move(bars);
  return chart;
}

BarChart plain_bars(std::string title, std::vector<std::string> categories, Axis y,
                    std::vector<double> values) {
  BarChart chart = bar_chart(std::move(title), std::move(categories), std::move(y), {});
  chart.bars.emplace_back().values = std::move(values);
  return chart;
}

std::vector<double> axis_ticks(double low, double high, int count) {
  if (!(high > low) || !std::isfinite(high - low)) return {low};
  const double rough = (high - low) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const auto first = std::llround(std::ceil(low / step - 1e-9));
  for (long long i = first; static_cast<double>(i) * step <= high + 1e-9 * step; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
  }
  return ticks;
}

std::string chart_sheet(const std::vector<Chart>& charts, const ChartSheet& sheet) {
  const double font = sheet.font_size;
  const int columns = std::clamp(sheet.columns, 1, std::max(1, static_cast<int>(charts.size())));
  const int rows = (static_cast<int>(charts.size()) + columns - 1) / columns;
  const double head =
      (sheet.title.empty() ? 0 : 2.6 * font) + (sheet.subtitle.empty() ? 0 : 1.8 * font);
  const double foot = 1.5 * font * static_cast<double>(sheet.footer.size()) + 0.6 * font;
  const bool fixed = sheet.width > 0 && sheet.height > 0;
  const double width = fixed ? sheet.width : sheet.panel_width * columns + 2 * font;
  const double height = fixed ? sheet.height : sheet.panel_height * rows + head + foot + 2 * font;
  const double panel_width = (width - 2 * font) / columns;
  const double panel_height = (height - head - foot - 2 * font) / std::max(1, rows);
  Svg svg(width, height, sheet.title, sheet.subtitle);
  double y = font;
  if (!sheet.title.empty()) {
    svg.text({1.4 * font, y + 1.4 * font}, svg_fitted(sheet.title, width - 3 * font, 1.5 * font),
             {.size = 1.5 * font, .bold = true});
    y += 2.6 * font;
  }
  if (!sheet.subtitle.empty()) {
    svg.text({1.4 * font, y + 0.6 * font}, svg_fitted(sheet.subtitle, width - 3 * font, font),
             {.size = font, .fill = kFaint});
    y += 1.8 * font;
  }
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const std::size_t column = i % static_cast<std::size_t>(columns);
    const std::size_t row = i / static_cast<std::size_t>(columns);
    const SvgBox box{font + panel_width * static_cast<double>(column) + 0.3 * font,
                     y + panel_height * static_cast<double>(row), panel_width - 0.6 * font,
                     panel_height - 0.6 * font};
    std::visit(Panel(svg, box, font), charts[i]);
  }
  y = height - foot;
  for (const std::string& line : sheet.footer) {
    svg.text({1.4 * font, y + font}, svg_fitted(line, width - 3 * font, font), {.size = font});
    y += 1.5 * font;
  }
  return svg.document();
}

}  // namespace nunchi
