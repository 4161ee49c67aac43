// The parts of which the drawings of an inspection consist: headings, heat maps, bars, boxes, and
// the sheet that stacks them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/inference/inspection.h"
#include "nunchi/views/svg.h"

namespace nunchi {

// A part of a drawing with a known size.
struct SvgBlock {
  double width = 0, height = 0;
  std::function<void(Svg& svg, SvgPoint at)> draw;  // `at` is its upper left corner
};

// A sheet: the title, then the blocks one below the other.
std::string svg_sheet(std::string_view title, std::string_view description,
                      const std::vector<SvgBlock>& blocks);

SvgBlock svg_heading(const std::string& text);
SvgBlock svg_note(const std::string& text);  // smaller, grey; broken into lines

// The blocks side by side, in several rows if they are wider than `width` together.
SvgBlock svg_side_by_side(std::vector<SvgBlock> blocks, double width);

struct SvgHeatmap {
  ValueMatrix values;
  std::vector<std::string> rows = {}, columns = {};  // names; empty: none are written
  std::string caption = {};
  double cell = 12;
  double largest = 1;         // the value of the darkest colour
  bool has_signs = false;     // colours for both signs
  bool print_values = false;  // percent, in cells that are large enough
  std::int64_t marked = -1;   // a row with a frame; -1: none
};
// A matrix with a side above 128 is drawn with fewer cells, each with the value of the largest
// magnitude that it stands for.
SvgBlock svg_heatmap(SvgHeatmap heatmap);

struct SvgBar {
  std::string name;
  double value = 0;
  std::string label = {};  // after the bar: "12.5%"
  bool marked = false;
};
// Horizontal bars; `largest` is the value of the longest.
SvgBlock svg_bars(std::string caption, std::vector<SvgBar> bars, double largest,
                  double width = 260);

struct SvgCurve {
  std::string name;
  std::vector<double> y;  // at x = 0, 1, 2, …
};
SvgBlock svg_curves(std::string caption, std::string x_label, std::vector<SvgCurve> curves);

// A box of lines with a title, as in the notes. Lines have equal letter widths.
struct SvgTextBox {
  std::string title;
  std::vector<std::string> lines;
  std::vector<std::size_t> marked = {};  // lines in bold
  std::vector<double> bars = {};         // of each line, 0 to 1; drawn at the right
  double width = 520;
};
SvgBlock svg_text_box(SvgTextBox box);
SvgBlock svg_arrow();  // down, from one box to the next

// The matrix with at most `side` rows and columns.
ValueMatrix pooled(const ValueMatrix& matrix, std::int64_t side);

}  // namespace nunchi
