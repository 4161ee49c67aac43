// The walk through a model and the arithmetic of one query, in boxes as in a lecture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "nunchi/views/inspection_svg_parts.h"

namespace nunchi::inspection_parts {
namespace {

constexpr std::size_t kMostPieces = 12;  // in the line of a box
constexpr std::int64_t kMostNumbers = 5;
constexpr std::size_t kMostTerms = 16;

std::string number(double value) {
  if (value == -INFINITY) return "-∞";
  return fmt::format("{:.3f}", value);
}

// "[0.12, -0.40, …]"
std::string numbers(std::span<const float> values) {
  std::string text = "[";
  const std::size_t count = std::min(values.size(), static_cast<std::size_t>(kMostNumbers));
  for (std::size_t i = 0; i < count; ++i) {
    text += (i > 0 ? ", " : "") + fmt::format("{: .2f}", values[i]);
  }
  return text + (count < values.size() ? ", …]" : "]");
}

std::string quoted(const std::string& piece) { return "“" + piece + "”"; }

std::string list_of(const std::vector<std::string>& pieces) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pieces.size(), kMostPieces); ++i) {
    text += (i > 0 ? "  " : "") + pieces[i];
  }
  if (pieces.size() > kMostPieces) text += "  …";
  return text;
}

std::string list_of(const Tokens& ids) {
  std::vector<std::string> texts;
  for (const std::int32_t id : ids) texts.push_back(std::to_string(id));
  return list_of(texts);
}

std::string shape(std::int64_t rows, std::int64_t columns) {
  return fmt::format("[{}, {}]", rows, columns);
}

// A column of boxes: one stack of the model.
class Column {
 public:
  Column(const Inspection& inspection, std::string stack, const InspectedText& text)
      : inspection_(inspection), stack_(std::move(stack)), text_(text) {}

  void box(const std::string& title, std::vector<std::string> lines = {}) {
    if (after_box_) blocks_.push_back(svg_arrow());
    blocks_.push_back(svg_text_box({.title = title, .lines = std::move(lines), .width = kWidth}));
    after_box_ = true;
  }

  // A box of the tap's shape and its first numbers, if the inspection has them.
  void tap_box(const std::string& title, std::string_view tap, int layer = -1,
               std::string_view part = "") {
    const ValueMatrix* values =
        inspection_.tensor(tap, {.stack = stack_, .layer = layer, .part = std::string(part)});
    if (values == nullptr || values->values.empty()) return;
    const std::int64_t row = values->rows - 1;
    const auto last = static_cast<std::size_t>(row);
    box(title + " " + shape(values->rows, values->columns),
        {(last < text_.pieces.size() ? quoted(text_.pieces[last])
                                     : fmt::format("row {}", row + 1)) +
         " → " + numbers(values->row(row))});
  }

  void attention_boxes(int layer, const std::string& part, const std::string& name,
                       const InspectedText& keys) {
    const auto& model = inspection_.model;
    const auto queries = static_cast<std::int64_t>(text_.pieces.size());
    const auto key_count = static_cast<std::int64_t>(keys.pieces.size());
    const std::int64_t width = model.heads * model.head_width;
    const bool masked = stack_ == "decoder" && part == "self_attention";
    norm_before(layer, part);
    box(name,
        {fmt::format("Q {}   K {}   V {}", shape(queries, width), shape(key_count, width),
                     shape(key_count, width)),
         fmt::format("Q · K ÷ √{}          [{} heads, {}, {}]", model.head_width, model.heads,
                     queries, key_count),
         masked ? "mask: -∞ where the key is later than the query" : "every query sees every key",
         "softmax → weights × V, the heads side by side",
         "projection " + shape(queries, model.width)});
    tap_box("Output", "attention_output", layer, part);
    add_box(layer, part);
  }

  void feed_forward_boxes(int layer) {
    norm_before(layer, "feed_forward");
    tap_box("Feed-forward", "feed_forward", layer, "feed_forward");
    add_box(layer, "feed_forward");
  }

  void heading(const std::string& text) {
    blocks_.push_back(svg_heading(text));
    after_box_ = false;
  }

  SvgBlock block() && {
    double height = 0;
    for (const SvgBlock& each : blocks_) height += each.height + kGap;
    return {kWidth, height, [blocks = std::move(blocks_)](Svg& svg, SvgPoint at) {
              double y = at.y;
              for (const SvgBlock& each : blocks) {
                each.draw(svg, {at.x, y});
                y += each.height + kGap;
              }
            }};
  }

 private:
  static constexpr double kWidth = 470, kGap = 14;

  bool is_pre_norm() const { return inspection_.model.norm == "pre"; }
  void norm_before(int layer, std::string_view part) {
    if (is_pre_norm()) tap_box("Norm", "norm_output", layer, part);
  }
  void add_box(int layer, std::string_view part) {
    tap_box("Add: the stream with this added", "residual_sum", layer, part);
    if (!is_pre_norm()) tap_box("Norm", "norm_output", layer, part);
  }

  const Inspection& inspection_;
  std::string stack_;
  const InspectedText& text_;
  Blocks blocks_;
  bool after_box_ = false;
};

// The layers that have attention in this stack.
int layers_of(const Inspection& inspection, const std::string& stack) {
  int layers = 0;
  for (const InspectedHead& head : inspection.attention) {
    if (head.place.stack == stack) layers = std::max(layers, head.place.layer + 1);
  }
  return layers;
}

bool has_attention(const Inspection& inspection, const std::string& stack, int layer,
                   const std::string& part) {
  return std::ranges::any_of(inspection.attention, [&](const InspectedHead& head) {
    return head.place.stack == stack && head.place.layer == layer && head.place.part == part;
  });
}

void add_probabilities(const Inspection& inspection, Column& column) {
  if (inspection.steps.empty()) return;
  const InspectedStep& step = inspection.steps.back();
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min<std::size_t>(step.best.size(), 5); ++i) {
    const TokenProbability& token = step.best[i];
    lines.push_back(
        fmt::format("{:>8.2f} → {:.4f}  {}", token.logit, token.probability, token.piece));
  }
  column.box(fmt::format("Logits → softmax, step {} of {}", inspection.steps.size(),
                         inspection.steps.size()),
             std::move(lines));
}

// `predicts`: the output of this stack is projected to the vocabulary.
SvgBlock stack_block(const Inspection& inspection, const std::string& stack,
                     const InspectedText& text, bool predicts) {
  Column column(inspection, stack, text);
  column.heading(stack == "encoder" ? "Encoder" : "Decoder");
  column.box(fmt::format("Tokens ({})", text.pieces.size()), {list_of(text.pieces)});
  column.box("Ids", {list_of(text.ids)});
  column.tap_box("Embedding", "token_embedding");
  column.tap_box("Position", "position");
  column.tap_box("Embedding + position", "embedding");
  // The first layer in detail; the others repeat it.
  const int layers = layers_of(inspection, stack);
  if (layers > 0) {
    column.heading(layers > 1 ? fmt::format("Layer 1 of {}", layers) : "The layer");
    const std::string self = "self_attention";
    if (has_attention(inspection, stack, 0, self)) {
      column.attention_boxes(0, self,
                             stack == "decoder" ? "Masked self-attention" : "Self-attention", text);
    }
    for (const std::string cross : {"cross_attention", "state_attention"}) {
      if (has_attention(inspection, stack, 0, cross)) {
        column.attention_boxes(0, cross, "Cross-attention: keys and values from the encoder",
                               inspection.source);
      }
    }
    column.feed_forward_boxes(0);
  }
  if (layers > 1) {
    column.box(layers > 2 ? fmt::format("{} more layers of the same kind", layers - 1)
                          : "One more layer of the same kind");
  }
  column.tap_box("Output of the stack", "stack_output");
  if (predicts) add_probabilities(inspection, column);
  return std::move(column).block();
}

// ---- Arithmetic ----

// The head whose sum is shown: the selected one, or the first one of the best alignment, or the
// last layer's first.
const InspectedHead* chosen_head(const Inspection& inspection,
                                 const InspectionSelection& selection) {
  const InspectedHead* chosen = nullptr;
  for (const InspectedHead& head : inspection.attention) {
    if (!selection.includes(head.place)) continue;
    const auto& best = inspection.alignment;
    const bool selected = selection.layer || selection.head || selection.attention;
    if (!selected && best && attention_name(head.place) == "cross" &&
        head.place.layer == best->layer && !best->heads.empty() &&
        head.place.head == best->heads.front()) {
      return &head;
    }
    if (chosen == nullptr || head.place.layer > chosen->place.layer) chosen = &head;
  }
  return chosen;
}

// The terms that are written: the largest weights, in the order of the keys.
std::vector<std::size_t> shown_terms(std::span<const float> weights) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > kMostTerms) {
    std::ranges::partial_sort(order, order.begin() + kMostTerms, std::greater<>(),
                              [&](std::size_t i) { return weights[i]; });
    order.resize(kMostTerms);
    std::ranges::sort(order);
  }
  return order;
}

// The rows of the head's slice of a tap with all heads side by side; null if it is not there.
std::optional<ValueMatrix> slice_of(const Inspection& inspection, std::string_view tap,
                                    const InspectedHead& head) {
  InspectedPlace place = head.place;
  place.head = -1;
  const ValueMatrix* values = inspection.tensor(tap, place);
  const std::int64_t width = inspection.model.head_width;
  if (values == nullptr || width <= 0 || values->columns % width != 0) return std::nullopt;
  // Grouped heads share keys and values.
  const std::int64_t slices = values->columns / width, heads = inspection.model.heads;
  const std::int64_t slice = slices > 0 && heads > 0 ? head.place.head * slices / heads : 0;
  return columns_of(*values, slice * width, width);
}

bool is_masked(const Inspection& inspection, const InspectedHead& head, std::int64_t query) {
  const ValueMatrix* scores = inspection.tensor("masked_scores", head.place);
  return scores != nullptr && query < scores->rows &&
         std::ranges::any_of(scores->row(query), [](float value) { return value == -INFINITY; });
}

}  // namespace

Blocks walk(const Inspection& inspection) {
  Blocks columns;
  if (!inspection.source.pieces.empty()) {
    columns.push_back(stack_block(inspection, "encoder", inspection.source, false));
  }
  if (!inspection.input.pieces.empty()) {
    const bool decodes =
        layers_of(inspection, "decoder") > 0 || inspection.model.decoder_layers > 0;
    columns.push_back(
        stack_block(inspection, decodes ? "decoder" : "encoder", inspection.input, true));
  }
  if (columns.empty()) return {};
  Blocks blocks;
  blocks.push_back(svg_heading("From the tokens to the probabilities"));
  blocks.push_back(svg_side_by_side(std::move(columns), 1.4 * kSheetWidth));
  blocks.push_back(svg_note(
      "Shapes are [rows, columns]; the numbers are the first ones of the row of the last token."));
  return blocks;
}

Blocks arithmetic(const Inspection& inspection, const InspectionSelection& selection) {
  const InspectedHead* head = chosen_head(inspection, selection);
  if (head == nullptr || head->weights.rows == 0 || head->weights.columns == 0) return {};
  const auto [queries, keys] = axes_of(inspection, head->place);
  const std::int64_t query =
      std::clamp<std::int64_t>(selection.query.value_or(static_cast<int>(head->weights.rows / 2)),
                               0, head->weights.rows - 1);
  const std::span<const float> weights = head->weights.row(query);
  const std::vector<std::size_t> terms = shown_terms(weights);
  const auto name_of_key = [&, &keys = keys](std::size_t key) {
    return key < keys.pieces.size() ? keys.pieces[key] : std::to_string(key + 1);
  };
  const std::string query_name = static_cast<std::size_t>(query) < queries.pieces.size()
                                     ? queries.pieces[static_cast<std::size_t>(query)]
                                     : std::to_string(query + 1);
  std::size_t strongest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (weights[terms[i]] > weights[terms[strongest]]) strongest = i;
  }
  const std::string left_out =
      terms.size() < weights.size()
          ? fmt::format("… and {} keys with smaller weights", weights.size() - terms.size())
          : "";

  Blocks blocks;
  const auto add = [&](SvgTextBox box) {
    if (!left_out.empty() && box.lines.size() >= terms.size()) box.lines.push_back(left_out);
    if (blocks.size() > 1) blocks.push_back(svg_arrow());
    box.width = 640;
    blocks.push_back(svg_text_box(std::move(box)));
  };
  blocks.push_back(svg_heading(fmt::format("The sum of query {} {}: {}", query + 1,
                                           quoted(query_name), place_name(head->place))));
  const auto query_rows = slice_of(inspection, "query", *head);
  if (query_rows && query < query_rows->rows) {
    add({.title = "Query",
         .lines = {fmt::format("Q{} = {}", query + 1, numbers(query_rows->row(query)))}});
  }
  const auto score_box = [&](std::string_view tap, const std::string& title, bool dot_product) {
    const ValueMatrix* scores = inspection.tensor(tap, head->place);
    if (scores == nullptr || query >= scores->rows) return;
    std::vector<std::string> lines;
    for (const std::size_t key : terms) {
      const double value = double{scores->at(query, static_cast<std::int64_t>(key))};
      lines.push_back(dot_product
                          ? fmt::format("Q{} · K{:<3} → {:>9}   {} and {}", query + 1, key + 1,
                                        number(value), quoted(query_name), quoted(name_of_key(key)))
                          : fmt::format("{:>9}   {}", number(value), name_of_key(key)));
    }
    add({.title = title, .lines = std::move(lines)});
  };
  score_box("scores", "Query · Key", true);
  score_box("scaled_scores", fmt::format("÷ √{}", inspection.model.head_width), false);
  score_box("biased_scores", "+ bias of the position", false);
  if (is_masked(inspection, *head, query)) {
    score_box("masked_scores", "Mask: -∞ where the query does not see the key", false);
  }
  SvgTextBox softmax{.title = "Softmax: weights, which sum to 1", .marked = {strongest}};
  for (const std::size_t key : terms) {
    softmax.lines.push_back(fmt::format("{}  {}", number(double{weights[key]}), name_of_key(key)));
    softmax.bars.push_back(double{weights[key]});
  }
  add(std::move(softmax));
  const auto values = slice_of(inspection, "value", *head);
  if (values && values->rows == static_cast<std::int64_t>(weights.size())) {
    std::vector<std::string> lines;
    lines.reserve(terms.size());
    for (const std::size_t key : terms) {
      lines.push_back(fmt::format("{} × V{:<3} {}  {}", number(double{weights[key]}), key + 1,
                                  numbers(values->row(static_cast<std::int64_t>(key))),
                                  name_of_key(key)));
    }
    const auto context = slice_of(inspection, "attention_context", *head);
    add({.title = "Weighted sum of the values", .lines = std::move(lines)});
    if (context && query < context->rows) {
      add({.title = "Context vector", .lines = {"Σ = " + numbers(context->row(query))}});
    }
  }
  return blocks;
}

}  // namespace nunchi::inspection_parts
