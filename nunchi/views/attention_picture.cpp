#include "nunchi/views/attention_picture.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"
#include "nunchi/views/columns.h"

namespace nunchi {
namespace {

constexpr int kMinWidth = 40;
constexpr int kCellWidth = 3;  // two columns of shade and one for the star
constexpr int kMaxHeadingLines = 10;
constexpr int kMaxTargetWidth = 14;
constexpr int kMaxSourceWidth = 10;  // for the source name at the end of a row
constexpr std::string_view kBar = "│";

struct Shade {
  float min_weight;  // the smallest weight with this shade
  std::string_view cell;
  std::string_view color;
};
constexpr std::array<Shade, 4> kShades{{{0.05f, "░░", "\x1b[38;5;25m"},
                                        {0.20f, "▒▒", "\x1b[38;5;32m"},
                                        {0.40f, "▓▓", "\x1b[38;5;39m"},
                                        {0.60f, "██", "\x1b[38;5;45m"}}};
constexpr std::string_view kStarColor = "\x1b[38;5;208m";
constexpr std::string_view kResetColor = "\x1b[0m";
constexpr std::string_view kLegend = "░░ 5%+  ▒▒ 20%+  ▓▓ 40%+  ██ 60%+  * max";

void check_size(const AttentionMatrix& attention) {
  const std::size_t rows = attention.targets.size(), columns = attention.sources.size();
  if (attention.weights.size() == rows * columns) return;
  throw Error("attention: " + std::to_string(attention.weights.size()) + " weights for " +
              std::to_string(rows) + " targets and " + std::to_string(columns) + " sources.");
}

// ---- Headings ----

// Whether the character is a digit or punctuation, which may share a line with another character.
bool can_share_line(const std::string& glyph) {
  return glyph.size() == 1 && std::isalpha(static_cast<unsigned char>(glyph[0])) == 0;
}

// The heading of a source from top to bottom, one letter or syllable on each line, padded to a
// cell. Digits and punctuation share a line in pairs, as in vertical writing: 20, 26, 년.
std::vector<std::string> heading_of(const std::string& source) {
  std::vector<std::string> lines;
  std::string previous;  // the character alone on the last line
  for (const std::string& glyph : glyphs_of(source)) {
    const bool same_line = !previous.empty() && display_width(previous + glyph) == 2 &&
                           (can_share_line(previous) || can_share_line(glyph));
    if (same_line) {
      lines.back() += glyph;
    } else {
      lines.push_back(glyph);
    }
    previous = same_line ? "" : glyph;
  }
  if (lines.size() > kMaxHeadingLines) {
    lines.resize(kMaxHeadingLines - 1);
    lines.emplace_back(kEllipsis);
  }
  for (std::string& line : lines) line += spaces(kCellWidth - display_width(line));
  return lines;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// ---- The picture ----

std::string cell_of(float weight, bool strongest, bool color) {
  if (!std::isfinite(weight)) return "?? ";
  const auto shade = std::ranges::find_if(kShades.rbegin(), kShades.rend(),
                                          [&](const Shade& s) { return weight >= s.min_weight; });
  const bool blank = shade == kShades.rend();
  const std::string cell = std::string(blank ? "  " : shade->cell) + (strongest ? "*" : " ");
  if (!color || (blank && !strongest)) return cell;
  return std::string(strongest ? kStarColor : shade->color) + cell + std::string(kResetColor);
}

// The strongest source of a row, the first of equal ones; nullopt when no weight is finite.
std::optional<std::size_t> strongest_of(std::span<const float> row) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (std::isfinite(row[i]) && (!best || row[i] > row[*best])) best = i;
  }
  return best;
}

// One target's labels and its strongest source.
struct Row {
  std::string target, strongest;  // strongest: "서울에서 93%"
  std::optional<std::size_t> best;
  std::span<const float> weights;  // [S]
};

std::vector<Row> rows_of(const AttentionMatrix& attention) {
  const std::size_t columns = attention.sources.size();
  std::vector<Row> rows;
  for (std::size_t i = 0; i < attention.targets.size(); ++i) {
    Row row{fitted(attention.targets[i], kMaxTargetWidth), "", std::nullopt,
            std::span(attention.weights).subspan(i * columns, columns)};
    row.best = strongest_of(row.weights);
    if (row.best) {
      // Clamped, so that wrong weights cannot make lround() overflow.
      const double percent = std::clamp(100.0 * row.weights[*row.best], -999.0, 999.0);
      row.strongest = fitted(attention.sources[*row.best], kMaxSourceWidth) + " " +
                      std::to_string(std::lround(percent)) + "%";
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

int widest(const std::vector<Row>& rows, std::string Row::*text) {
  int width = 0;
  for (const Row& row : rows) width = std::max(width, display_width(row.*text));
  return width;
}

// The part of the picture for sources [begin, end): headings, then a line for each row.
std::string band(const std::vector<std::vector<std::string>>& headings,
                 const std::vector<Row>& rows, std::size_t begin, std::size_t end, bool color) {
  const int left = widest(rows, &Row::target);
  std::size_t height = 0;
  for (std::size_t s = begin; s < end; ++s) height = std::max(height, headings[s].size());

  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::string heading = spaces(left + 2);
    for (std::size_t s = begin; s < end; ++s) {
      const std::size_t above = height - headings[s].size();  // headings are aligned at the bottom
      heading += line < above ? spaces(kCellWidth) : headings[s][line - above];
    }
    text += without_trailing_spaces(heading) + "\n";
  }
  for (const Row& row : rows) {
    text += spaces(left - display_width(row.target)) + row.target + " " + std::string(kBar);
    for (std::size_t s = begin; s < end; ++s) {
      text += cell_of(row.weights[s], row.best == s, color);
    }
    text += std::string(kBar);
    if (!row.strongest.empty()) text += " " + row.strongest;
    text += "\n";
  }
  return text;
}

}  // namespace

std::string attention_picture(const AttentionMatrix& attention,
                              const AttentionPictureOptions& options) {
  check_size(attention);
  if (attention.weights.empty()) return {};
  const std::vector<Row> rows = rows_of(attention);
  std::vector<std::vector<std::string>> headings;
  for (const std::string& source : attention.sources) headings.push_back(heading_of(source));

  // Left of the cells: the target, a space and a bar. Right: a bar, a space and the strongest
  // source.
  const int other_columns = widest(rows, &Row::target) + 2 + 2 + widest(rows, &Row::strongest);
  const std::size_t max_per_band =
      (std::max(options.width, kMinWidth) - other_columns) / kCellWidth;
  const std::size_t bands = (headings.size() + max_per_band - 1) / max_per_band;
  const std::size_t per_band = (headings.size() + bands - 1) / bands;  // as evenly as possible
  std::string text;
  for (std::size_t begin = 0; begin < headings.size(); begin += per_band) {
    text += band(headings, rows, begin, std::min(begin + per_band, headings.size()), options.color);
    text += "\n";
  }
  return text += std::string(kLegend) + "\n";
}

}  // namespace nunchi
