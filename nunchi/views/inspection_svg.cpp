#include "nunchi/views/inspection_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "nunchi/views/color.h"
#include "nunchi/views/inspection_svg_parts.h"

namespace nunchi {
namespace inspection_parts {
namespace {

constexpr std::int64_t kMostNamed = 40;  // rows or columns with names
constexpr std::size_t kMostSteps = 60;

using Heads = std::vector<const InspectedHead*>;

std::string kind_name(const std::string& attention) {
  if (attention == "cross") return "Cross-attention";
  return attention == "encoder" ? "Self-attention of the encoder" : "Self-attention of the decoder";
}

SvgHeatmap heatmap_of(const Inspection& inspection, const InspectedHead& head, double cell) {
  SvgHeatmap heatmap{.values = head.weights, .cell = cell};
  if (head.weights.rows <= kMostNamed && head.weights.columns <= kMostNamed) {
    const auto [queries, keys] = axes_of(inspection, head.place);
    heatmap.rows = queries.pieces;
    heatmap.columns = keys.pieces;
  }
  return heatmap;
}

// ": previous 0.91"; a head without a kind, "mixed", has no measure.
std::string kind_of(const InspectedHead& head) {
  if (head.kind.name.empty()) return "";
  if (head.kind.measure == 0) return ": " + head.kind.name;
  return fmt::format(": {} {:.2f}", head.kind.name, head.kind.measure);
}

double cell_for(const InspectedHead& head, double side, double most) {
  const auto longest = static_cast<double>(std::max(head.weights.rows, head.weights.columns));
  return std::clamp(side / std::max(longest, 1.0), 2.0, most);
}

// One head, as large as it can be, with its weights in percent.
SvgBlock large(const Inspection& inspection, const InspectedHead& head, std::int64_t marked) {
  SvgHeatmap heatmap = heatmap_of(inspection, head, cell_for(head, 720, 32));
  heatmap.caption = place_name(head.place) + kind_of(head);
  heatmap.print_values = true;
  heatmap.marked = marked;
  return svg_heatmap(std::move(heatmap));
}

// The heads of one layer with names.
SvgBlock side_by_side(const Inspection& inspection, const Heads& heads, std::int64_t marked) {
  Blocks blocks;
  for (const InspectedHead* head : heads) {
    SvgHeatmap heatmap = heatmap_of(inspection, *head, cell_for(*head, 240, 16));
    heatmap.caption = fmt::format("layer {}, head {}{}", head->place.layer + 1,
                                  head->place.head + 1, kind_of(*head));
    heatmap.marked = marked;
    blocks.push_back(svg_heatmap(std::move(heatmap)));
  }
  return svg_side_by_side(std::move(blocks), kSheetWidth);
}

// All heads of all layers, small: a row for each layer.
Blocks overview(const Heads& heads) {
  std::map<int, Blocks> layers;
  for (const InspectedHead* head : heads) {
    SvgHeatmap heatmap{.values = pooled(head->weights, 48)};
    const auto side =
        static_cast<double>(std::max<std::int64_t>(heatmap.values.columns, heatmap.values.rows));
    heatmap.cell = std::clamp(108 / std::max(side, 1.0), 1.5, 14.0);
    heatmap.caption =
        fmt::format("{}.{}{}", head->place.layer + 1, head->place.head + 1, kind_of(*head));
    layers[head->place.layer].push_back(svg_heatmap(std::move(heatmap)));
  }
  Blocks blocks;
  for (auto& [layer, row] : layers) {
    blocks.push_back(svg_side_by_side(std::move(row), 2 * kSheetWidth));
  }
  return blocks;
}

}  // namespace

std::string place_name(const InspectedPlace& place) {
  std::string name = place.stack;
  if (place.layer >= 0) name += fmt::format(", layer {}", place.layer + 1);
  std::string part = place.part;
  std::ranges::replace(part, '_', '-');
  if (!part.empty()) name += ", " + part;
  if (place.head >= 0) name += fmt::format(", head {}", place.head + 1);
  return name;
}

Blocks attention(const Inspection& inspection, const InspectionSelection& selection) {
  const std::int64_t marked = selection.query.value_or(-1);
  Blocks blocks;
  for (const std::string kind : {"encoder", "decoder", "cross"}) {
    Heads heads;
    for (const InspectedHead& head : inspection.attention) {
      if (attention_name(head.place) == kind && selection.includes(head.place)) {
        heads.push_back(&head);
      }
    }
    if (heads.empty()) continue;
    blocks.push_back(svg_heading(kind_name(kind)));
    if (selection.head) {
      for (const InspectedHead* head : heads) blocks.push_back(large(inspection, *head, marked));
    } else if (selection.layer) {
      blocks.push_back(side_by_side(inspection, heads, marked));
    } else {
      for (SvgBlock& row : overview(heads)) blocks.push_back(std::move(row));
    }
  }
  if (blocks.empty()) return blocks;
  const auto& alignment = inspection.alignment;
  if (alignment && !selection.layer && !selection.head &&
      (!selection.attention || selection.attention == "cross")) {
    std::string heads;
    for (const int head : alignment->heads) {
      heads += (heads.empty() ? "" : " + ") + std::to_string(head + 1);
    }
    const InspectedPlace place{.stack = "decoder", .part = "cross_attention"};
    InspectedHead mean{.place = place, .kind = {}, .weights = alignment->weights};
    SvgHeatmap heatmap = heatmap_of(inspection, mean, cell_for(mean, 720, 32));
    heatmap.print_values = true;
    heatmap.marked = marked;
    heatmap.caption = fmt::format("mean of layer {}, heads {}", alignment->layer + 1, heads);
    blocks.push_back(svg_heading("The heads that point best from the target to the source"));
    blocks.push_back(svg_heatmap(std::move(heatmap)));
  }
  blocks.push_back(
      svg_note("A row is a query, a column is a key; darker is more. Numbers are percent. A row "
               "sums to 1."));
  return blocks;
}

Blocks words(const Inspection& inspection) {
  constexpr std::size_t kMostBars = 6;
  Blocks steps;
  for (std::size_t i = 0; i < std::min(inspection.steps.size(), kMostSteps); ++i) {
    const InspectedStep& step = inspection.steps[i];
    std::vector<SvgBar> bars;
    for (std::size_t b = 0; b < std::min(step.best.size(), kMostBars); ++b) {
      const TokenProbability& token = step.best[b];
      bars.push_back({.name = token.piece,
                      .value = token.probability,
                      .label = fmt::format("{:.1f}%", 100 * token.probability),
                      .marked = token.id == step.chosen.id});
    }
    const bool shown = std::ranges::any_of(bars, [](const SvgBar& bar) { return bar.marked; });
    if (!shown) {
      bars.push_back({.name = step.chosen.piece,
                      .value = step.chosen.probability,
                      .label = fmt::format("{:.2g}%", 100 * step.chosen.probability),
                      .marked = true});
    }
    steps.push_back(svg_bars(fmt::format("{}. {}", i + 1, step.chosen.piece), std::move(bars), 1));
  }
  if (steps.empty()) return {};
  Blocks blocks;
  blocks.push_back(svg_heading("The likeliest tokens of each step"));
  blocks.push_back(svg_side_by_side(std::move(steps), kSheetWidth));
  blocks.push_back(svg_note("The token of the text is orange and bold."));
  if (inspection.steps.size() > kMostSteps) {
    blocks.push_back(
        svg_note(fmt::format("The first {} of {} steps.", kMostSteps, inspection.steps.size())));
  }
  return blocks;
}

Blocks positions(const Inspection& inspection) {
  if (!inspection.positions) return {};
  const InspectedPositions& positions = *inspection.positions;
  Blocks blocks;
  blocks.push_back(svg_heading("Positions: " + positions.kind));
  const std::int64_t count = positions.rows.rows, width = positions.rows.columns;
  if (count > 0 && width > 0) {
    float largest = 0;
    for (const float value : positions.rows.values) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    Blocks pictures;
    pictures.push_back(svg_heatmap({.values = pooled(positions.rows, 96),
                                    .caption = "rows: positions, columns: dimensions",
                                    .cell = 4,
                                    .largest = double{largest},
                                    .has_signs = true}));
    if (!positions.similarity.values.empty()) {
      pictures.push_back(svg_heatmap({.values = pooled(positions.similarity, 96),
                                      .caption = "cosine of two positions",
                                      .cell = 4,
                                      .largest = 1,
                                      .has_signs = true}));
    }
    blocks.push_back(svg_side_by_side(std::move(pictures), kSheetWidth));
    std::vector<SvgCurve> curves;
    for (const std::int64_t dimension : {std::int64_t{0}, width / 50, width * 3 / 5, width - 1}) {
      if (!curves.empty() && curves.back().name == fmt::format("dimension {}", dimension)) continue;
      SvgCurve curve{.name = fmt::format("dimension {}", dimension), .y = {}};
      for (std::int64_t p = 0; p < count; ++p) {
        curve.y.push_back(double{positions.rows.at(p, dimension)});
      }
      curves.push_back(std::move(curve));
    }
    blocks.push_back(svg_curves("The value of some dimensions", "position", std::move(curves)));
  }
  if (!positions.biases.empty()) {
    std::vector<SvgCurve> curves;
    for (std::size_t head = 0; head < std::min<std::size_t>(positions.biases.size(), 8); ++head) {
      const ValueMatrix& bias = positions.biases[head];
      SvgCurve curve{.name = fmt::format("head {}", head + 1), .y = {}};
      // From the last query back to the first key: distance 0, 1, 2, …
      for (std::int64_t distance = 0; distance < bias.rows; ++distance) {
        curve.y.push_back(double{bias.at(bias.rows - 1, bias.columns - 1 - distance)});
      }
      curves.push_back(std::move(curve));
    }
    blocks.push_back(
        svg_curves("The bias of a score by distance", "distance to the key", std::move(curves)));
  }
  return blocks;
}

Blocks norms(const Inspection& inspection, const InspectionSelection& selection) {
  const auto mean_of_rows = [](const std::vector<float>& values) {
    double sum = 0;
    std::int64_t finite = 0;
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      sum += double{value};
      ++finite;
    }
    return finite == 0 ? 0 : sum / static_cast<double>(finite);
  };
  std::vector<SvgBar> before, after, branch;
  double most_before = 0, most_after = 0, most_branch = 0;
  constexpr std::size_t kMost = 64;
  for (const InspectedNorm& norm : inspection.norms) {
    if (!selection.includes(norm.place) || before.size() == kMost) continue;
    const std::string name = place_name(norm.place);
    const auto add = [&](std::vector<SvgBar>& bars, double value, double& most) {
      most = std::max(most, value);
      bars.push_back({.name = name, .value = value, .label = fmt::format("{:.3g}", value)});
    };
    add(before, mean_of_rows(norm.deviation_before), most_before);
    add(after, mean_of_rows(norm.deviation_after), most_after);
    const double stream = mean_of_rows(norm.stream_length);
    add(branch, stream > 0 ? mean_of_rows(norm.branch_length) / stream : 0, most_branch);
  }
  if (before.empty()) return {};
  Blocks charts;
  charts.push_back(svg_bars("Deviation before the norm", std::move(before), most_before, 360));
  charts.push_back(svg_bars("Deviation after it", std::move(after), most_after, 360));
  charts.push_back(svg_bars("Length of what the sub-layer added, as a share of the stream",
                            std::move(branch), std::max(most_branch, 1.0), 360));
  Blocks blocks;
  blocks.push_back(svg_heading("Normalisation: means over the words of the text"));
  blocks.push_back(svg_side_by_side(std::move(charts), 1.2 * kSheetWidth));
  return blocks;
}

}  // namespace inspection_parts

std::string inspection_svg(const Inspection& inspection, const InspectionSelection& selection) {
  namespace parts = inspection_parts;
  check_selection(selection, inspection);
  const Inspection shown = selection.words ? joined_into_words(inspection) : inspection;
  parts::Blocks blocks;
  const auto add = [&](InspectionView view, parts::Blocks more) {
    if (!selection.includes(view)) return;
    for (SvgBlock& block : more) blocks.push_back(std::move(block));
  };
  add(InspectionView::walk, parts::walk(inspection));
  add(InspectionView::attention, parts::attention(shown, selection));
  add(InspectionView::arithmetic, parts::arithmetic(inspection, selection));
  add(InspectionView::words, parts::words(inspection));
  add(InspectionView::positions, parts::positions(inspection));
  add(InspectionView::norms, parts::norms(inspection, selection));
  add(InspectionView::beam, parts::beam(inspection));
  const std::string title = inspection.target_text.empty()
                                ? inspection.source_text
                                : inspection.source_text + " → " + inspection.target_text;
  const auto& model = inspection.model;
  return svg_sheet(svg_fitted(title, parts::kSheetWidth, 20),
                   fmt::format("{} ({})", model.name, model.family), blocks);
}

}  // namespace nunchi
