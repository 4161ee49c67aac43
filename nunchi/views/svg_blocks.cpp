#include "nunchi/views/svg_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "nunchi/views/color.h"
#include "nunchi/views/columns.h"

namespace nunchi {
namespace {

constexpr double kMargin = 24, kGap = 14;
constexpr double kBold = 1.1;  // bold letters are wider
constexpr double kTitleSize = 18, kHeadingSize = 14, kTextSize = 12, kSmallSize = 10;
constexpr double kMostLabel = 110;  // the width of a label
constexpr std::int64_t kMostCells = 128;

double widest(std::span<const std::string> texts, double size) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, svg_text_width(text, size));
  return std::min(width, kMostLabel);
}

double label_size(double cell) { return std::clamp(0.8 * cell, 6.0, 11.0); }

// A path of cells of one colour: far smaller than an element for each cell.
void add_cell(std::string& path, double x, double y, double width, double height) {
  path += fmt::format("M{} {}h{}v{}h{}z", svg_number(x), svg_number(y), svg_number(width),
                      svg_number(height), svg_number(-width));
}

void draw_cells(Svg& svg, SvgPoint at, const SvgHeatmap& heatmap) {
  std::map<std::string, std::string> paths;  // by colour
  const ValueMatrix& values = heatmap.values;
  for (std::int64_t r = 0; r < values.rows; ++r) {
    const double y = at.y + static_cast<double>(r) * heatmap.cell;
    for (std::int64_t c = 0; c < values.columns;) {
      const auto color_at = [&](std::int64_t column) {
        const double value = double{values.at(r, column)};
        return heatmap.has_signs ? signed_color(value, heatmap.largest)
                                 : weight_color(value, heatmap.largest);
      };
      // Neighbours of one colour become one cell.
      const std::string color = color_at(c);
      std::int64_t end = c + 1;
      while (end < values.columns && color_at(end) == color) ++end;
      add_cell(paths[color], at.x + static_cast<double>(c) * heatmap.cell, y,
               static_cast<double>(end - c) * heatmap.cell, heatmap.cell);
      c = end;
    }
  }
  for (const auto& [color, path] : paths) svg.path(path, {.fill = color});
}

void draw_values(Svg& svg, SvgPoint at, const SvgHeatmap& heatmap) {
  const double size = 0.36 * heatmap.cell;
  for (std::int64_t r = 0; r < heatmap.values.rows; ++r) {
    for (std::int64_t c = 0; c < heatmap.values.columns; ++c) {
      const double value = double{heatmap.values.at(r, c)};
      if (!std::isfinite(value) || value < 0.005) continue;
      svg.text({at.x + (static_cast<double>(c) + 0.5) * heatmap.cell,
                svg_baseline(at.y + (static_cast<double>(r) + 0.5) * heatmap.cell, size)},
               fmt::format("{:.0f}", 100 * value),
               {.size = size,
                .anchor = SvgAnchor::middle,
                .fill = ink_on(weight_color(value, heatmap.largest))});
    }
  }
}

// The range of all curves; never empty.
std::pair<double, double> range_of(const std::vector<SvgCurve>& curves) {
  double low = 0, high = 0;
  for (const SvgCurve& curve : curves) {
    for (const double y : curve.y) {
      if (!std::isfinite(y)) continue;
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  return {low, high > low ? high : low + 1};
}

// The text in lines of at most `width`.
std::vector<std::string> broken(const std::string& text, double width, double size) {
  std::vector<std::string> lines;
  std::string line;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && svg_text_width(line + " " + word, size) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::string svg_sheet(std::string_view title, std::string_view description,
                      const std::vector<SvgBlock>& blocks) {
  double width = kBold * svg_text_width(title, kTitleSize), height = kMargin + kTitleSize + kGap;
  for (const SvgBlock& block : blocks) {
    width = std::max(width, block.width);
    height += block.height + kGap;
  }
  Svg svg(std::ceil(width + 2 * kMargin), std::ceil(height + kMargin - kGap), title, description);
  double y = kMargin + kTitleSize;
  svg.text({kMargin, y}, title, {.size = kTitleSize, .bold = true});
  y += kGap;
  for (const SvgBlock& block : blocks) {
    block.draw(svg, {kMargin, y});
    y += block.height + kGap;
  }
  return svg.document();
}

SvgBlock svg_heading(const std::string& text) {
  return {kBold * svg_text_width(text, kHeadingSize), kHeadingSize + 8,
          [text](Svg& svg, SvgPoint at) {
            svg.text({at.x, at.y + kHeadingSize + 4}, text, {.size = kHeadingSize, .bold = true});
          }};
}

SvgBlock svg_note(const std::string& text) {
  constexpr double kWidth = 640, kLine = 1.4 * kTextSize;
  const std::vector<std::string> lines = broken(text, kWidth, kTextSize);
  return {kWidth, kLine * static_cast<double>(lines.size()), [lines](Svg& svg, SvgPoint at) {
            for (std::size_t i = 0; i < lines.size(); ++i) {
              svg.text({at.x, at.y + kLine * static_cast<double>(i) + kTextSize}, lines[i],
                       {.size = kTextSize, .fill = kSoftInk});
            }
          }};
}

SvgBlock svg_side_by_side(std::vector<SvgBlock> blocks, double width) {
  struct Placed {
    SvgBlock block;
    SvgPoint at;
  };
  std::vector<Placed> placed;
  double x = 0, y = 0, row_height = 0, widest_row = 0;
  for (SvgBlock& block : blocks) {
    if (x > 0 && x + block.width > width) {
      y += row_height + kGap;
      x = row_height = 0;
    }
    const double block_width = block.width;
    row_height = std::max(row_height, block.height);
    placed.push_back({std::move(block), {x, y}});
    x += block_width + kGap;
    widest_row = std::max(widest_row, x - kGap);
  }
  return {widest_row, y + row_height, [placed = std::move(placed)](Svg& svg, SvgPoint at) {
            for (const Placed& each : placed) {
              each.block.draw(svg, {at.x + each.at.x, at.y + each.at.y});
            }
          }};
}

ValueMatrix pooled(const ValueMatrix& matrix, std::int64_t side) {
  const std::int64_t step_r = (matrix.rows + side - 1) / side;
  const std::int64_t step_c = (matrix.columns + side - 1) / side;
  if (step_r <= 1 && step_c <= 1) return matrix;
  ValueMatrix small{
      (matrix.rows + step_r - 1) / step_r, (matrix.columns + step_c - 1) / step_c, {}};
  for (std::int64_t r = 0; r < small.rows; ++r) {
    for (std::int64_t c = 0; c < small.columns; ++c) {
      float largest = 0;
      for (std::int64_t i = r * step_r; i < std::min((r + 1) * step_r, matrix.rows); ++i) {
        for (std::int64_t j = c * step_c; j < std::min((c + 1) * step_c, matrix.columns); ++j) {
          const float value = matrix.at(i, j);
          if (std::isfinite(value) && std::fabs(value) > std::fabs(largest)) largest = value;
        }
      }
      small.values.push_back(largest);
    }
  }
  return small;
}

SvgBlock svg_heatmap(SvgHeatmap heatmap) {
  const std::int64_t rows = heatmap.values.rows, columns = heatmap.values.columns;
  if (rows > kMostCells || columns > kMostCells) {
    heatmap.values = pooled(heatmap.values, kMostCells);
    heatmap.cell *= static_cast<double>(columns) / static_cast<double>(heatmap.values.columns);
    heatmap.cell = std::clamp(heatmap.cell, 2.0, 6.0);
    heatmap.rows.clear();
    heatmap.columns.clear();
    heatmap.marked = -1;
    heatmap.caption += fmt::format(" ({} × {}, reduced)", rows, columns);
  }
  const double size = label_size(heatmap.cell);
  const double left = heatmap.rows.empty() ? 0 : widest(heatmap.rows, size) + 6;
  // Column names are turned by 60 degrees and lean to the right.
  const double slanted = heatmap.columns.empty() ? 0 : widest(heatmap.columns, size);
  const double caption = heatmap.caption.empty() ? 0 : kSmallSize + 8;
  const double top = caption + (slanted > 0 ? 0.87 * slanted + size : 0);
  const double width = heatmap.cell * static_cast<double>(heatmap.values.columns);
  const double height = heatmap.cell * static_cast<double>(heatmap.values.rows);
  SvgBlock block;
  block.width = std::max(left + width + 0.5 * slanted, svg_text_width(heatmap.caption, kSmallSize));
  block.height = top + height + 2;
  block.draw = [=, heatmap = std::move(heatmap)](Svg& svg, SvgPoint at) {
    const auto group = svg.group({}, heatmap.caption);
    const SvgPoint cells{at.x + left, at.y + top};
    if (caption > 0) {
      svg.text({at.x, at.y + kSmallSize + 1}, heatmap.caption,
               {.size = kSmallSize, .fill = kSoftInk});
    }
    draw_cells(svg, cells, heatmap);
    if (heatmap.print_values && heatmap.cell >= 18) draw_values(svg, cells, heatmap);
    svg.rect({cells.x, cells.y, width, height}, {.stroke = kLineColor});
    if (heatmap.marked >= 0 && heatmap.marked < heatmap.values.rows) {
      svg.rect({cells.x, cells.y + static_cast<double>(heatmap.marked) * heatmap.cell, width,
                heatmap.cell},
               {.stroke = kMarkColor, .stroke_width = 2});
    }
    for (std::size_t r = 0; r < heatmap.rows.size(); ++r) {
      const double y = cells.y + (static_cast<double>(r) + 0.5) * heatmap.cell;
      svg.text({cells.x - 5, svg_baseline(y, size)}, svg_fitted(heatmap.rows[r], kMostLabel, size),
               {.size = size, .anchor = SvgAnchor::end});
    }
    for (std::size_t c = 0; c < heatmap.columns.size(); ++c) {
      const double x = cells.x + (static_cast<double>(c) + 0.6) * heatmap.cell;
      svg.text({x, cells.y - 4}, svg_fitted(heatmap.columns[c], kMostLabel, size),
               {.size = size, .rotation = -60});
    }
  };
  return block;
}

SvgBlock svg_bars(std::string caption, std::vector<SvgBar> bars, double largest, double width) {
  constexpr double kRow = 17, kBarHeight = 11;
  std::vector<std::string> names, labels;
  for (const SvgBar& bar : bars) {
    names.push_back(bar.name);
    labels.push_back(bar.label);
  }
  const double left = widest(names, kSmallSize) + 6, right = widest(labels, kSmallSize) + 8;
  const double room = std::max(20.0, width - left - right);
  const double top = caption.empty() ? 0 : kTextSize + 8;
  SvgBlock block{std::max(width, svg_text_width(caption, kTextSize)),
                 top + kRow * static_cast<double>(bars.size()),
                 {}};
  block.draw = [=, caption = std::move(caption), bars = std::move(bars)](Svg& svg, SvgPoint at) {
    const auto group = svg.group({}, caption);
    if (top > 0) svg.text({at.x, at.y + kTextSize}, caption, {.size = kTextSize, .bold = true});
    for (std::size_t i = 0; i < bars.size(); ++i) {
      const SvgBar& bar = bars[i];
      const double y = at.y + top + kRow * static_cast<double>(i), middle = y + kRow / 2;
      const double share =
          largest > 0 && std::isfinite(bar.value) ? std::clamp(bar.value / largest, 0.0, 1.0) : 0;
      svg.text({at.x + left - 5, svg_baseline(middle, kSmallSize)},
               svg_fitted(bar.name, kMostLabel, kSmallSize),
               {.size = kSmallSize, .anchor = SvgAnchor::end, .bold = bar.marked});
      svg.rect({at.x + left, middle - kBarHeight / 2, std::max(1.0, room * share), kBarHeight},
               {.fill = bar.marked ? kMarkColor : kAccent}, bar.name + ": " + bar.label);
      svg.text({at.x + left + room * share + 5, svg_baseline(middle, kSmallSize)}, bar.label,
               {.size = kSmallSize, .bold = bar.marked});
    }
  };
  return block;
}

SvgBlock svg_curves(std::string caption, std::string x_label, std::vector<SvgCurve> curves) {
  constexpr double kWidth = 420, kHeight = 180, kLeft = 44, kLegend = 150;
  const double top = kTextSize + 10;
  SvgBlock block{kLeft + kWidth + kLegend, top + kHeight + 2 * kTextSize + 10, {}};
  block.draw = [=, caption = std::move(caption), x_label = std::move(x_label),
                curves = std::move(curves)](Svg& svg, SvgPoint at) {
    const auto group = svg.group({}, caption);
    svg.text({at.x, at.y + kTextSize}, caption, {.size = kTextSize, .bold = true});
    const auto [low, high] = range_of(curves);
    std::size_t longest = 2;
    for (const SvgCurve& curve : curves) longest = std::max(longest, curve.y.size());
    const SvgPoint origin{at.x + kLeft, at.y + top};
    const auto y_of = [&, low = low, high = high](double value) {
      return origin.y + kHeight * (1 - (value - low) / (high - low));
    };
    for (const double value : {low, (low + high) / 2, high}) {
      svg.line({origin.x, y_of(value)}, {origin.x + kWidth, y_of(value)}, {.color = kGridColor});
      const bool is_zero = std::abs(value) < 1e-3 * (high - low);
      svg.text({origin.x - 5, svg_baseline(y_of(value), kSmallSize)},
               fmt::format("{:.3g}", is_zero ? 0.0 : value),
               {.size = kSmallSize, .anchor = SvgAnchor::end});
    }
    for (const auto& [x, position] :
         {std::pair{0.0, std::size_t{0}}, {kWidth / 2, (longest - 1) / 2}, {kWidth, longest - 1}}) {
      svg.text({origin.x + x, origin.y + kHeight + kSmallSize + 4}, std::to_string(position),
               {.size = kSmallSize, .anchor = SvgAnchor::middle});
    }
    svg.text({origin.x + kWidth / 2, origin.y + kHeight + 2 * kSmallSize + 8}, x_label,
             {.size = kSmallSize, .anchor = SvgAnchor::middle, .fill = kSoftInk});
    for (std::size_t i = 0; i < curves.size(); ++i) {
      const SeriesStyle style = series_style(static_cast<int>(i));
      std::vector<SvgPoint> points;
      for (std::size_t x = 0; x < curves[i].y.size(); ++x) {
        if (!std::isfinite(curves[i].y[x])) continue;
        points.push_back(
            {origin.x + kWidth * static_cast<double>(x) / static_cast<double>(longest - 1),
             y_of(curves[i].y[x])});
      }
      const SvgStroke stroke{.color = style.color, .width = 1.5, .dashes = style.dashes};
      svg.polyline(points, stroke, curves[i].name);
      const double y = origin.y + 8 + 16 * static_cast<double>(i);
      svg.line({origin.x + kWidth + 12, y}, {origin.x + kWidth + 36, y}, stroke);
      svg.text({origin.x + kWidth + 41, svg_baseline(y, kSmallSize)},
               svg_fitted(curves[i].name, kLegend - 45, kSmallSize), {.size = kSmallSize});
    }
  };
  return block;
}

SvgBlock svg_text_box(SvgTextBox box) {
  constexpr double kLine = 17, kPadding = 10, kMonospaceSize = 11;
  const double top = kTextSize + 2 * kPadding;
  const double bar_width = box.bars.empty() ? 0 : 0.4 * box.width;
  SvgBlock block{box.width, top + kLine * static_cast<double>(box.lines.size()) + kPadding, {}};
  const double height = block.height;
  block.draw = [=, box = std::move(box)](Svg& svg, SvgPoint at) {
    const auto group = svg.group({}, box.title);
    svg.rect({at.x, at.y, box.width, height}, {.fill = kWash, .stroke = kLineColor, .radius = 6});
    svg.text({at.x + box.width / 2, at.y + kPadding + kTextSize}, box.title,
             {.size = kTextSize, .anchor = SvgAnchor::middle, .bold = true});
    for (std::size_t i = 0; i < box.lines.size(); ++i) {
      const bool bold = std::ranges::find(box.marked, i) != box.marked.end();
      const double y = at.y + top + kLine * static_cast<double>(i);
      svg.text({at.x + kPadding, y + kMonospaceSize},
               svg_fitted(box.lines[i], box.width - 2 * kPadding - bar_width, kMonospaceSize),
               {.size = kMonospaceSize, .bold = bold, .monospace = true});
      if (i >= box.bars.size()) continue;
      const double share = std::isfinite(box.bars[i]) ? std::clamp(box.bars[i], 0.0, 1.0) : 0;
      svg.rect({at.x + box.width - bar_width, y + 1, std::max(1.0, (bar_width - kPadding) * share),
                kMonospaceSize},
               {.fill = bold ? kMarkColor : kAccent});
    }
  };
  return block;
}

SvgBlock svg_arrow() {
  constexpr double kLength = 10;
  return {0, kLength - kGap, [](Svg& svg, SvgPoint at) {
            // In the gap above and below: blocks are kGap apart.
            const double x = at.x + 40, y = at.y - kGap + 2;
            svg.line({x, y}, {x, y + kLength}, {.color = kSoftInk, .width = 1.5});
            svg.path(fmt::format("M{0} {1}l-4 -5h8z", svg_number(x), svg_number(y + kLength + 2)),
                     {.fill = kSoftInk});
          }};
}

}  // namespace nunchi
