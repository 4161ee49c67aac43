// The tree of a beam search: a column for each step, lines from each candidate to its parent.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nunchi/views/color.h"
#include "nunchi/views/inspection_svg_parts.h"

namespace nunchi::inspection_parts {
namespace {

constexpr std::size_t kMostSteps = 24, kMostNodes = 12;
constexpr double kNodeWidth = 92, kNodeHeight = 30, kStepGap = 38, kNodeGap = 8, kTop = 20;

SvgPaint paint_of(BeamNode::State state, bool best) {
  if (state == BeamNode::State::dropped) {
    return {.fill = "#ffffff", .stroke = kLineColor, .dashes = "3 2", .radius = 4};
  }
  SvgPaint paint{.fill = best ? "#d3e3f3" : kWash, .stroke = kAccent, .radius = 4};
  if (state == BeamNode::State::finished) paint.stroke_width = 2.5;
  return paint;
}

std::string_view name_of(BeamNode::State state) {
  if (state == BeamNode::State::kept) return "kept";
  return state == BeamNode::State::dropped ? "dropped" : "finished";
}

struct PlacedNode {
  const BeamNode* node;
  SvgPoint at;  // the upper left corner
};

void draw_node(Svg& svg, const PlacedNode& placed, bool best) {
  const BeamNode& node = *placed.node;
  const bool dropped = node.state == BeamNode::State::dropped;
  const auto group = svg.group({}, fmt::format("{}: {}{}", node.piece, name_of(node.state),
                                               node.why.empty() ? "" : ", " + node.why));
  svg.rect({placed.at.x, placed.at.y, kNodeWidth, kNodeHeight}, paint_of(node.state, best));
  svg.text({placed.at.x + 6, placed.at.y + 13}, svg_fitted(node.piece, kNodeWidth - 12, 11),
           {.size = 11, .fill = dropped ? kSoftInk : kInk, .bold = best});
  svg.text({placed.at.x + 6, placed.at.y + 25},
           fmt::format("{:.2f}  ({:+.2f})", node.score, node.log_probability),
           {.size = 8.5, .fill = kSoftInk});
}

}  // namespace

Blocks beam(const Inspection& inspection) {
  if (!inspection.beam || inspection.beam->steps.empty()) return {};
  const BeamTree& tree = *inspection.beam;
  std::map<int, PlacedNode> nodes;  // by id
  const std::size_t steps = std::min(tree.steps.size(), kMostSteps);
  std::size_t most = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t count = std::min(tree.steps[step].size(), kMostNodes);
    most = std::max(most, count);
    for (std::size_t i = 0; i < count; ++i) {
      const BeamNode& node = tree.steps[step][i];
      nodes[node.id] = {&node,
                        {static_cast<double>(step) * (kNodeWidth + kStepGap),
                         kTop + static_cast<double>(i) * (kNodeHeight + kNodeGap)}};
    }
  }
  const std::vector<int> best = tree.best;
  SvgBlock block{static_cast<double>(steps) * (kNodeWidth + kStepGap) - kStepGap,
                 kTop + static_cast<double>(most) * (kNodeHeight + kNodeGap),
                 {}};
  block.draw = [=](Svg& svg, SvgPoint at) {
    const auto is_best = [&](int id) { return std::ranges::find(best, id) != best.end(); };
    const auto moved = [&](SvgPoint point) { return SvgPoint{at.x + point.x, at.y + point.y}; };
    for (std::size_t step = 0; step < steps; ++step) {
      svg.text(moved({static_cast<double>(step) * (kNodeWidth + kStepGap), 11}),
               fmt::format("step {}", step + 1), {.size = 10, .fill = kSoftInk});
    }
    for (const auto& [id, placed] : nodes) {
      const auto parent = nodes.find(placed.node->parent);
      if (parent == nodes.end()) continue;
      const SvgPoint from =
          moved({parent->second.at.x + kNodeWidth, parent->second.at.y + kNodeHeight / 2});
      const SvgPoint to = moved({placed.at.x, placed.at.y + kNodeHeight / 2});
      const bool dropped = placed.node->state == BeamNode::State::dropped;
      const bool thick = is_best(id) && is_best(parent->first);
      svg.path(fmt::format("M{} {}C{} {} {} {} {} {}", svg_number(from.x), svg_number(from.y),
                           svg_number(from.x + kStepGap / 2), svg_number(from.y),
                           svg_number(to.x - kStepGap / 2), svg_number(to.y), svg_number(to.x),
                           svg_number(to.y)),
               {.stroke = dropped ? kLineColor : kAccent,
                .stroke_width = thick ? 3.0 : 1.0,
                .dashes = dropped ? "3 2" : ""});
    }
    for (const auto& [id, placed] : nodes) {
      draw_node(svg, {placed.node, moved(placed.at)}, is_best(id));
    }
  };
  Blocks blocks;
  blocks.push_back(svg_heading(fmt::format("Beam search, {} hypotheses", tree.size)));
  blocks.push_back(std::move(block));
  blocks.push_back(svg_note(
      "A box: the token, the log-probability of the hypothesis and, in brackets, of the token. "
      "Dashed: dropped. Thick frame: finished. Thick line: the path of the best hypothesis."));
  if (tree.steps.size() > steps) {
    blocks.push_back(svg_note(fmt::format("The first {} of {} steps.", steps, tree.steps.size())));
  }
  return blocks;
}

}  // namespace nunchi::inspection_parts
