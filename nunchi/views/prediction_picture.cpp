#include "nunchi/views/prediction_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "nunchi/text/unicode.h"
#include "nunchi/views/columns.h"

namespace nunchi {
namespace {

constexpr std::size_t kMaxSteps = 60;
constexpr std::size_t kMostWithBars = 3;  // steps whose tokens all have bars
constexpr int kMinWidth = 40, kMaxPieceWidth = 16, kMaxBarWidth = 30;
constexpr std::string_view kBarColor = "\x1b[38;5;39m", kResetColor = "\x1b[0m";

std::span<const InspectedStep> last_steps(const Inspection& inspection, std::size_t count) {
  std::span<const InspectedStep> steps = inspection.steps;
  if (count > 0 && count < steps.size()) steps = steps.last(count);
  return steps.first(std::min(steps.size(), kMaxSteps));
}

// The heads of self-attention in the last layer.
std::vector<const ValueMatrix*> last_layer(const Inspection& inspection) {
  std::vector<const ValueMatrix*> heads;
  int layer = -1;
  for (const InspectedHead& head : inspection.attention) {
    if (head.place.part != "self_attention" || head.place.layer < layer) continue;
    if (head.place.layer > layer) heads.clear();
    layer = head.place.layer;
    heads.push_back(&head.weights);
  }
  return heads;
}

// Eighths of a column: █████▌, padded to `width` columns.
std::string bar_of(double share, int width, bool color) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double limited = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  const auto eighths = static_cast<int>(std::lround(limited * 8 * width));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[static_cast<std::size_t>(eighths % 8)];
  const std::string padding = spaces(width - display_width(bar));
  if (color && !bar.empty()) bar = std::string(kBarColor) + bar + std::string(kResetColor);
  return bar + padding;
}

std::string percent(double probability) {
  return std::isfinite(probability) ? fmt::format("{:5.1f}%", 100 * probability) : "    ?%";
}

int widest_piece(std::span<const InspectedStep> steps, bool all) {
  int width = 1;
  for (const InspectedStep& step : steps) {
    width = std::max(width, display_width(fitted(step.chosen.piece, kMaxPieceWidth)));
    for (const TokenProbability& token : step.best) {
      if (all) width = std::max(width, display_width(fitted(token.piece, kMaxPieceWidth)));
    }
  }
  return width;
}

// One line: the token with its bar, then others that were likely, as far as they fit.
std::string step_line(const InspectedStep& step, int piece_width, int bar_width,
                      const AttentionPictureOptions& options) {
  std::string line = left_aligned(step.chosen.piece, piece_width) + "  ";
  int columns = piece_width + 2 + bar_width + 7;
  line += bar_of(step.chosen.probability, bar_width, options.color) + " " +
          percent(step.chosen.probability);
  for (const TokenProbability& token : step.best) {
    if (token.id == step.chosen.id) continue;
    const std::string other =
        "  " + fitted(token.piece, kMaxPieceWidth) + percent(token.probability);
    columns += display_width(other);
    if (columns > std::max(options.width, kMinWidth)) break;
    line += other;
  }
  return line + "\n";
}

}  // namespace

AttentionMatrix prediction_attention(const Inspection& inspection, std::size_t steps) {
  const std::vector<const ValueMatrix*> heads = last_layer(inspection);
  const std::span<const InspectedStep> shown = last_steps(inspection, steps);
  if (heads.empty() || shown.empty()) return {};
  const ValueMatrix mean = mean_of(heads);
  AttentionMatrix matrix{.sources = inspection.input.pieces};
  if (mean.columns != std::ssize(matrix.sources)) return {};
  // Keys that no step shown sees are left out.
  std::int64_t keys = 0;
  for (const InspectedStep& step : shown) {
    if (step.position >= mean.rows) return {};
    const std::span<const float> row = mean.row(step.position);
    for (std::int64_t key = keys; key < mean.columns; ++key) {
      if (row[static_cast<std::size_t>(key)] != 0) keys = key + 1;
    }
  }
  matrix.sources.resize(static_cast<std::size_t>(keys));
  for (const InspectedStep& step : shown) {
    matrix.targets.push_back(step.chosen.piece);
    const auto row = mean.row(step.position).first(static_cast<std::size_t>(keys));
    matrix.weights.insert(matrix.weights.end(), row.begin(), row.end());
  }
  return matrix;
}

std::string prediction_picture(const Inspection& inspection, std::size_t steps,
                               const AttentionPictureOptions& options) {
  const std::span<const InspectedStep> shown = last_steps(inspection, steps);
  if (shown.empty()) return {};
  std::string text = attention_picture(prediction_attention(inspection, steps), options);
  if (!text.empty()) text += "\n";
  const bool all_bars = shown.size() <= kMostWithBars;
  const int piece_width = widest_piece(shown, all_bars);
  const int width = std::max(options.width, kMinWidth);
  const int bar_width =
      std::clamp((width - piece_width - 10) / (all_bars ? 1 : 2), 8, kMaxBarWidth);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (!all_bars) {
      text += step_line(shown[i], piece_width, bar_width, options);
      continue;
    }
    if (i > 0) text += "\n";
    for (const TokenProbability& token : shown[i].best) {
      text += left_aligned(token.piece, piece_width) + "  " +
              bar_of(token.probability, bar_width, options.color) + " " +
              percent(token.probability) + "\n";
    }
  }
  return text;
}

}  // namespace nunchi
