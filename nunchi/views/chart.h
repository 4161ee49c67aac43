// Charts as SVG: lines, bars and heat maps with axes, ticks, units and legends.
//
// A chart is readable in grey: lines differ in dashes and markers, bars in lightness, and a heat
// map's colours grow darker with the value.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace nunchi {

struct Axis {
  std::string label;         // with the unit: "time (ms)"
  bool logarithmic = false;  // values must be above 0
  // The range; none: the smallest that holds all values, rounded to ticks.
  std::optional<double> low = {}, high = {};
};

struct Line {
  std::string name;          // in the legend; empty: none
  std::vector<double> x, y;  // of equal size
};
struct LineChart {
  std::string title;
  Axis x, y;
  std::vector<Line> lines;
};
LineChart line_chart(std::string title, Axis x, Axis y, std::vector<Line> lines);

struct Bars {
  std::string name;            // in the legend; empty: none
  std::vector<double> values;  // one for each category
};
struct BarChart {
  std::string title;
  std::vector<std::string> categories;
  Axis y;
  std::vector<Bars> bars;  // side by side within a category
  bool print_values = true;
};
BarChart bar_chart(std::string title, std::vector<std::string> categories, Axis y,
                   std::vector<Bars> bars);
// One bar for each category.
BarChart plain_bars(std::string title, std::vector<std::string> categories, Axis y,
                    std::vector<double> values);

struct HeatMap {
  std::string title;
  std::string x_label, y_label;
  // Names of columns and rows. Where there are too many to print, some are left out.
  std::vector<std::string> columns, rows;
  std::vector<double> values;  // rows × columns, row by row
  double low = 0, high = 1;    // the range of the colours
  std::string value_label;     // of the colour scale
  bool print_values = false;   // in the cells
};

using Chart = std::variant<LineChart, BarChart, HeatMap>;

struct ChartSheet {
  std::string title;
  std::string subtitle;
  std::vector<std::string> footer = {};  // lines below the charts
  double panel_width = 560, panel_height = 400;
  double font_size = 13;
  int columns = 2;
  // Both above 0: the size of the whole sheet, which the panels then fill.
  double width = 0, height = 0;
};

// The charts in a grid. Throws Error for sizes that do not fit: x and y of a line, bars and
// categories, the cells of a heat map. Values that are not finite are left out.
std::string chart_sheet(const std::vector<Chart>& charts, const ChartSheet& sheet);

// Round numbers that divide [low, high] into about `count` parts, all within the range.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace nunchi
