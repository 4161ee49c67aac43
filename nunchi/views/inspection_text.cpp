#include "nunchi/views/inspection_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/views/attention_picture.h"
#include "nunchi/views/columns.h"
#include "nunchi/views/inspection_boxes.h"

namespace nunchi {
namespace {

constexpr int kMinWidth = 40;

std::string bar(double share, int width) {
  const auto filled = static_cast<int>(std::lround(share * width));
  std::string text;
  for (int i = 0; i < std::clamp(filled, 0, width); ++i) text += "█";
  return text;
}

std::string picture(const Inspection& inspection, const InspectedPlace& place,
                    const ValueMatrix& weights, const InspectionTextOptions& options) {
  const auto [queries, keys] = axes_of(inspection, place);
  return attention_picture(
      {.sources = keys.pieces, .targets = queries.pieces, .weights = weights.values},
      {.width = options.width, .color = options.color});
}

std::string attention_text(const Inspection& pieces, const InspectionSelection& selection,
                           const InspectionTextOptions& options) {
  const Inspection inspection = selection.words ? joined_into_words(pieces) : pieces;
  std::string text;
  for (const InspectedHead& head : inspection.attention) {
    if (!selection.includes(head.place)) continue;
    text += fmt::format("{} layer {}, {}, head {}: {}", head.place.stack, head.place.layer + 1,
                        head.place.part, head.place.head + 1, head.kind.name);
    if (head.kind.measure > 0) text += fmt::format(" {:.2f}", head.kind.measure);
    std::string others;
    for (const auto& [name, measure] : head.kind.all) {
      others += fmt::format("{}{} {:.2f}", others.empty() ? "" : ", ", name, measure);
    }
    text += "\n(" + others + ")\n" + picture(inspection, head.place, head.weights, options) + "\n";
  }
  if (selection.layer || selection.head) return text;
  for (const InspectedWeights& entry : inspection.rollout) {
    if (!selection.includes(entry.place)) continue;
    text +=
        fmt::format("{}, {}: rollout through all layers\n", entry.place.stack, entry.place.part) +
        picture(inspection, entry.place, entry.weights, options) + "\n";
  }
  if (inspection.alignment && (!selection.attention || *selection.attention == "cross")) {
    std::string heads;
    for (const int head : inspection.alignment->heads) {
      heads += (heads.empty() ? "" : " + ") + std::to_string(head + 1);
    }
    text += fmt::format("the heads that align best: layer {}, {}\n",
                        inspection.alignment->layer + 1, heads) +
            picture(inspection, {.stack = "decoder", .part = "cross_attention"},
                    inspection.alignment->weights, options);
  }
  return text;
}

std::string words_text(const Inspection& inspection, const InspectionSelection& selection,
                       const InspectionTextOptions& options) {
  constexpr int kPiece = 18;
  std::string text;
  for (std::size_t i = 0; i < inspection.steps.size(); ++i) {
    const InspectedStep& step = inspection.steps[i];
    if (!selects(selection, inspection, step)) continue;
    text +=
        fmt::format("{}{}. {} {:.2f}%\n", text.empty() ? "" : "\n", i + 1,
                    fitted(step.chosen.piece, options.width - 20), 100 * step.chosen.probability);
    double rest = 1;
    for (const TokenProbability& token : step.best) {
      rest -= token.probability;
      text += fmt::format("  {} {:>8.2f} {:>7.2f}% {}{}\n", left_aligned(token.piece, kPiece),
                          token.logit, 100 * token.probability,
                          bar(token.probability, options.width - 42),
                          token.id == step.chosen.id ? " ←" : "");
    }
    text += fmt::format("  {} {:>8} {:>7.2f}% {}\n", left_aligned("(all others)", kPiece), "",
                        100 * std::max(0.0, rest), bar(rest, options.width - 42));
  }
  return text;
}

std::string positions_text(const InspectedPositions& positions,
                           const InspectionTextOptions& options) {
  std::string text = "positions: " + positions.kind + "\n";
  const auto columns = static_cast<std::int64_t>((options.width - 10) / 7);
  const ValueMatrix& rows = positions.rows;
  if (!rows.values.empty()) {
    text += fmt::format("\nrows, the first {} of {} dimensions\n", std::min(columns, rows.columns),
                        rows.columns);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(rows.rows, 16); ++i) {
      text += fmt::format("  {:>4} │", i);
      for (std::int64_t d = 0; d < std::min(columns, rows.columns); ++d) {
        text += fmt::format(" {:>6.2f}", rows.at(i, d));
      }
      text += "\n";
    }
    text += "\ndistance and similarity of two positions\n";
    for (const auto& [a, b] :
         {std::pair<std::int64_t, std::int64_t>{3, 4}, {3, 8}, {3, 16}, {3, 32}, {3, 63}}) {
      if (b >= rows.rows) continue;
      double squares = 0;
      for (std::int64_t d = 0; d < rows.columns; ++d) {
        squares += std::pow(double{rows.at(a, d)} - double{rows.at(b, d)}, 2);
      }
      text += fmt::format("  ‖{} − {}‖ = {:.2f}, cosine {:.2f}\n", a, b, std::sqrt(squares),
                          positions.similarity.at(a, b));
    }
  }
  for (std::size_t head = 0; head < positions.biases.size(); ++head) {
    const ValueMatrix& bias = positions.biases[head];
    if (head == 0) text += "\nbias of a score, by how far the key is before the query\n";
    text += fmt::format("  head {:>2} │", head + 1);
    for (std::int64_t distance = 0; distance < std::min(columns, bias.rows); ++distance) {
      text += fmt::format(" {:>6.2f}", bias.at(bias.rows - 1, bias.rows - 1 - distance));
    }
    text += "\n";
  }
  return text;
}

std::string norms_text(const Inspection& inspection, const InspectionSelection& selection) {
  std::string text, stack;
  for (const InspectedNorm& norm : inspection.norms) {
    if (!selection.includes(norm.place)) continue;
    const bool has_source = !inspection.source.pieces.empty();
    const InspectedText& words =
        norm.place.stack == "encoder" && has_source ? inspection.source : inspection.input;
    const auto row = static_cast<std::size_t>(selection.row_in(words).value_or(0));
    if (norm.place.stack != stack) {
      stack = norm.place.stack;
      text += fmt::format("{}{}, word {}\n{:<20}{:>18}{:>20}{:>20}\n", text.empty() ? "" : "\n",
                          stack, words.pieces[row], "", "mean", "deviation", "length");
      text += fmt::format("{:<20}{:>18}{:>20}{:>20}\n", "", "before → after", "before → after",
                          "added / stream");
    }
    text += fmt::format("{:>3} {:<16}{:>9.2f} → {:>6.2f}{:>11.2f} → {:>6.2f}{:>11.2f} / {:>6.2f}\n",
                        norm.place.layer + 1, norm.place.part, norm.mean_before[row],
                        norm.mean_after[row], norm.deviation_before[row], norm.deviation_after[row],
                        norm.branch_length[row], norm.stream_length[row]);
  }
  return text;
}

std::string beam_text(const BeamTree& beam, const InspectionTextOptions& options) {
  std::string text = fmt::format("beam of {}\n", beam.size);
  const auto is_best = [&](int id) { return std::ranges::find(beam.best, id) != beam.best.end(); };
  for (std::size_t t = 0; t < beam.steps.size(); ++t) {
    text += fmt::format("\nstep {}\n", t + 1);
    for (const BeamNode& node : beam.steps[t]) {
      const char* mark = node.state == BeamNode::State::dropped    ? "×"
                         : node.state == BeamNode::State::finished ? "■"
                                                                   : "○";
      const std::string parent = node.parent > 0 ? fmt::format("#{}", node.parent) : "start";
      std::string line =
          fmt::format("  {} #{:<4} {} {} {:>8.3f} {:>6.2f}%{}{}", mark, node.id,
                      left_aligned("after " + parent, 11), left_aligned(node.piece, 14), node.score,
                      100 * std::exp(node.log_probability), is_best(node.id) ? " ← best" : "",
                      node.why.empty() ? "" : "  " + node.why);
      text += fitted(line, options.width) + "\n";
    }
  }
  return text + "\n○ kept  × dropped  ■ finished; the number is the log-probability so far\n";
}

}  // namespace

std::string to_text(const Inspection& inspection, const InspectionSelection& selection,
                    const InspectionTextOptions& given) {
  InspectionTextOptions options = given;
  options.width = std::max(options.width, kMinWidth);
  switch (selection.view.value_or(InspectionView::walk)) {
    case InspectionView::walk:
      return walk_text(inspection, selection, options.width);
    case InspectionView::attention:
      return attention_text(inspection, selection, options);
    case InspectionView::arithmetic:
      return arithmetic_text(inspection, selection, options.width);
    case InspectionView::words:
      return words_text(inspection, selection, options);
    case InspectionView::positions:
      return positions_text(*inspection.positions, options);
    case InspectionView::norms:
      return norms_text(inspection, selection);
    case InspectionView::beam:
      return beam_text(*inspection.beam, options);
  }
  return {};
}

}  // namespace nunchi
