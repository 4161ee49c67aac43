#include "nunchi/views/inspection_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"
#include "nunchi/views/columns.h"
#include "nunchi/views/note_box.h"

namespace nunchi {
namespace {

using Lines = std::vector<std::string>;

constexpr int kNameWidth = 14;         // of a piece
constexpr std::size_t kMaskRows = 16;  // a larger mask is not drawn

// A minus sign that is as wide as a digit, and two decimals.
std::string number(double value, int decimals = 2) {
  if (std::isinf(value)) return value < 0 ? "−∞" : "∞";
  return fmt::format("{:.{}f}", value, decimals);
}

// "[0.12, -0.50, 1.03, …]"
std::string vector_text(std::span<const float> values, std::size_t shown = 4) {
  std::string text = "[";
  for (std::size_t i = 0; i < std::min(shown, values.size()); ++i) {
    text += (i > 0 ? ", " : "") + number(double{values[i]});
  }
  return text + (values.size() > shown ? ", …]" : "]");
}

std::string quoted(const std::string& piece) { return "\"" + piece + "\""; }

std::string named(const std::string& piece) { return left_aligned(quoted(piece), kNameWidth); }

// What the arithmetic of one head needs. Taps that the model does not have are null.
struct HeadValues {
  InspectedPlace place;
  const ValueMatrix* weights = nullptr;
  ValueMatrix query, key, value;  // of this head; empty if they were not recorded
  const ValueMatrix *scores = nullptr, *scaled = nullptr, *biased = nullptr, *masked = nullptr;

  bool has_scores() const { return scores != nullptr && masked != nullptr; }
  bool is_scaled() const { return scaled != nullptr && scaled->values != scores->values; }
  bool is_causal() const { return place.stack == "decoder" && place.part == "self_attention"; }
};

// One head's columns of a tap of all heads; heads may share keys and values.
ValueMatrix of_head(const Inspection& inspection, std::string_view tap, const InspectedPlace& place,
                    std::int64_t head_width) {
  InspectedPlace whole = place;
  whole.head = -1;
  const ValueMatrix* const found = inspection.tensor(tap, whole);
  if (found == nullptr) return {};
  if (head_width <= 0 || found->columns % head_width != 0) return *found;
  std::int64_t heads = 0;
  for (const InspectedHead& head : inspection.attention) {
    InspectedPlace other = head.place;
    other.head = place.head;
    if (other == place) ++heads;
  }
  const std::int64_t groups = found->columns / head_width;
  const std::int64_t sharing = groups > 0 ? heads / groups : 0;  // query heads of a group
  if (sharing < 1 || sharing * groups != heads) return *found;
  return columns_of(*found, place.head / sharing * head_width, head_width);
}

HeadValues head_values(const Inspection& inspection, const InspectedPlace& place) {
  HeadValues values{.place = place, .weights = &inspection.head(place)->weights};
  const std::int64_t width = inspection.model.head_width;
  values.query = of_head(inspection, "query", place, width);
  values.key = of_head(inspection, "key", place, width);
  values.value = of_head(inspection, "value", place, width);
  values.scores = inspection.tensor("scores", place);
  values.scaled = inspection.tensor("scaled_scores", place);
  values.biased = inspection.tensor("biased_scores", place);
  values.masked = inspection.tensor("masked_scores", place);
  return values;
}

// The head that a view shows: the selected one, or the first that fits.
const InspectedHead* chosen_head(const Inspection& inspection, const InspectionSelection& selection,
                                 const std::string& stack, const std::string& part) {
  for (const InspectedHead& head : inspection.attention) {
    if (head.place.stack == stack && head.place.part == part && selection.includes(head.place)) {
      return &head;
    }
  }
  return nullptr;
}

// The row that a box shows: the selected one, or the first.
std::int64_t chosen_row(const InspectionSelection& selection, const InspectedText& rows) {
  return selection.row_in(rows).value_or(0);
}

// "Q1 · K2 →   2.30   ← "고양이" and "는""
Lines score_lines(const HeadValues& head, const AttentionAxes& axes, std::int64_t row,
                  const ValueMatrix& scores) {
  Lines lines;
  for (std::int64_t j = 0; j < scores.columns; ++j) {
    const auto query = static_cast<std::size_t>(row), key = static_cast<std::size_t>(j);
    lines.push_back(fmt::format("Q{} · K{:<3} → {}   ← {} and {}", row + 1, j + 1,
                                right_aligned(number(double{scores.at(row, j)}), 8),
                                quoted(axes.queries.pieces[query]), quoted(axes.keys.pieces[key])));
    if (head.is_causal() && j >= row) {
      if (j + 1 < scores.columns) {
        lines.push_back(fmt::format("→ K{}, … are masked: this word comes before them", j + 2));
      }
      break;
    }
  }
  return lines;
}

// ○ where a query sees a key, × where it does not.
Lines mask_lines(const InspectedText& words) {
  const std::size_t count = words.pieces.size();
  if (count > kMaskRows) return {"a word sees itself and the words before it"};
  constexpr int kCell = 5;
  Lines lines{spaces(kNameWidth)};
  for (const std::string& piece : words.pieces) lines[0] += left_aligned(piece, kCell - 1) + " ";
  for (std::size_t i = 0; i < count; ++i) {
    std::string line = left_aligned(words.pieces[i], kNameWidth);
    for (std::size_t j = 0; j < count; ++j) line += left_aligned(j <= i ? "○" : "×", kCell);
    lines.push_back(line);
  }
  return lines;
}

Lines weight_lines(const ValueMatrix& weights, const AttentionAxes& axes, std::int64_t row) {
  Lines lines;
  const std::span<const float> values = weights.row(row);
  const auto best = std::max_element(values.begin(), values.end()) - values.begin();
  const std::string& query = axes.queries.pieces[static_cast<std::size_t>(row)];
  for (std::int64_t j = 0; j < weights.columns; ++j) {
    const double weight = double{values[static_cast<std::size_t>(j)]};
    std::string bar;
    for (long i = 0; i < std::lround(weight * 20); ++i) bar += "█";
    lines.push_back(
        fmt::format("{} → {} ({}) {}{}", query,
                    left_aligned(axes.keys.pieces[static_cast<std::size_t>(j)] + ":", kNameWidth),
                    number(weight), bar, j == best ? " ← most" : ""));
  }
  return lines;
}

// The rows of a tap, one line for each piece.
Lines row_lines(const InspectedText& words, const ValueMatrix& values) {
  Lines lines;
  for (std::int64_t i = 0; i < values.rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    const std::string name = row < words.pieces.size() ? words.pieces[row] : std::to_string(i + 1);
    lines.push_back(named(name) + " → " + vector_text(values.row(i)));
  }
  return lines;
}

// Mean and deviation of the numbers of a row.
std::pair<double, double> statistics(std::span<const float> row) {
  double mean = 0, squares = 0;
  for (const float x : row) mean += double{x} / double(row.size());
  for (const float x : row) squares += (double{x} - mean) * (double{x} - mean);
  return {mean, std::sqrt(squares / double(row.size()))};
}

// Writes the boxes of the walk.
class Walk {
 public:
  Walk(const Inspection& inspection, const InspectionSelection& selection, int width)
      : inspection_(inspection), selection_(selection), boxes_(width) {}

  std::string text() {
    const bool has_source = !inspection_.source.pieces.empty();
    const std::string shown_text = has_source ? inspection_.source_text : inspection_.target_text;
    boxes_.add("Text", {shown_text});
    if (has_source) stack("encoder", inspection_.source);
    const bool decodes = inspection_.task != Inspection::Task::fill;
    stack(decodes ? "decoder" : "encoder", inspection_.input);
    predictions();
    if (decodes) boxes_.add("Detokenizer", {"→ " + inspection_.target_text});
    return boxes_.text();
  }

 private:
  const ValueMatrix* tap(std::string_view name, const std::string& stack, int layer = -1,
                         const std::string& part = "") const {
    return inspection_.tensor(name, {.stack = stack, .layer = layer, .part = part});
  }

  void stack(const std::string& stack, const InspectedText& words) {
    const std::string name = stack == "encoder" ? "Encoder" : "Decoder";
    Lines tokens;
    for (std::size_t i = 0; i < words.pieces.size(); ++i) {
      tokens.push_back(named(words.pieces[i]) +
                       (i < words.ids.size() ? " → " + std::to_string(words.ids[i]) : ""));
    }
    boxes_.add(stack == "decoder" && !inspection_.source.pieces.empty()
                   ? "Decoder input: token → id"
                   : "Tokenizer: token → id",
               tokens);
    if (const ValueMatrix* rows = tap("token_embedding", stack)) {
      boxes_.add("Embedding: id → vector", row_lines(words, *rows));
    }
    if (const ValueMatrix* rows = tap("position", stack)) {
      boxes_.add("Position: " + inspection_.model.position, row_lines(words, *rows));
      if (const ValueMatrix* sum = tap("embedding", stack)) {
        boxes_.add("Embedding + position", row_lines(words, *sum));
      }
    }
    const auto layers = static_cast<int>(stack == "encoder" ? inspection_.model.encoder_layers
                                                            : inspection_.model.decoder_layers);
    const int detailed = std::clamp(selection_.layer.value_or(0), 0, std::max(0, layers - 1));
    for (int i = 0; i < layers; ++i) {
      if (i == detailed) {
        layer(stack, name, i, words);
      } else if (const ValueMatrix* out = tap("layer_output", stack, i)) {
        boxes_.add(fmt::format("{} layer {}", name, i + 1), row_lines(words, *out));
      }
    }
    if (const ValueMatrix* out = tap("stack_output", stack)) {
      boxes_.add(name + " output", row_lines(words, *out));
    }
  }

  void layer(const std::string& stack, const std::string& name, int layer,
             const InspectedText& words) {
    const std::string title = fmt::format("{} layer {}", name, layer + 1);
    InspectionSelection here = selection_;
    here.layer = layer;
    here.attention.reset();
    for (const char* part : {"self_attention", "cross_attention", "state_attention"}) {
      const InspectedHead* head = chosen_head(inspection_, here, stack, part);
      if (head == nullptr) continue;
      attention(title, head->place);
      add_and_norm(stack, layer, part, words, "attention_output");
    }
    if (const ValueMatrix* hidden = tap("feed_forward_hidden", stack, layer, "feed_forward")) {
      const std::int64_t row = chosen_row(selection_, words);
      Lines lines{
          fmt::format("hidden ({} numbers) {}", hidden->columns, vector_text(hidden->row(row)))};
      if (const ValueMatrix* out = tap("feed_forward", stack, layer, "feed_forward")) {
        lines.push_back(
            fmt::format("output ({} numbers) {}", out->columns, vector_text(out->row(row))));
      }
      lines.push_back("← " + quoted(words.pieces[static_cast<std::size_t>(row)]));
      boxes_.add(title + ": Feed Forward", lines);
      add_and_norm(stack, layer, "feed_forward", words, "feed_forward");
    }
  }

  void attention(const std::string& layer, const InspectedPlace& place) {
    const HeadValues head = head_values(inspection_, place);
    const AttentionAxes axes = axes_of(inspection_, place);
    const std::int64_t row = chosen_row(selection_, axes.queries);
    const std::string kind = place.part == "self_attention"
                                 ? (head.is_causal() ? "Masked Self-Attention" : "Self-Attention")
                                 : "Cross-Attention";
    boxes_.heading(fmt::format("{}: {}, head {}", layer, kind, place.head + 1));
    if (!head.query.values.empty()) query_key_value(head, axes);
    if (head.has_scores()) {
      boxes_.add("Query · Key", score_lines(head, axes, row, *head.scores));
      if (head.is_scaled()) {
        boxes_.add(fmt::format("÷ √{}", head.query.columns),
                   score_lines(head, axes, row, *head.scaled));
      }
      if (head.biased != nullptr) {
        boxes_.add("+ bias of the positions", score_lines(head, axes, row, *head.biased));
      }
      if (head.is_causal()) boxes_.add("Mask", mask_lines(axes.keys));
    }
    Lines softmax{"→ scores become attention weights, which sum to 1"};
    const Lines weights = weight_lines(*head.weights, axes, row);
    softmax.insert(softmax.end(), weights.begin(), weights.end());
    boxes_.add("Softmax", softmax);
    if (!head.value.values.empty()) weighted_sum(head, axes, row);
    heads_side_by_side(place, row);
    InspectedPlace whole = place;
    whole.head = -1;
    if (const ValueMatrix* output = inspection_.tensor("attention_output", whole)) {
      boxes_.add("Linear", {"→ " + vector_text(output->row(row))});
    }
  }

  void query_key_value(const HeadValues& head, const AttentionAxes& axes) {
    Lines lines;
    const bool same = &axes.queries == &axes.keys;
    const auto name = [](const InspectedText& words, std::int64_t i) {
      constexpr int kShortName = 10;
      return left_aligned(quoted(words.pieces[static_cast<std::size_t>(i)]), kShortName) + " →";
    };
    const auto vector = [](const char* letter, std::int64_t i, const ValueMatrix& rows) {
      return fmt::format(" {}{} {}", letter, i + 1, vector_text(rows.row(i), 2));
    };
    for (std::int64_t i = 0; i < head.query.rows; ++i) {
      lines.push_back(name(axes.queries, i) + vector("Q", i, head.query) +
                      (same ? vector("K", i, head.key) + vector("V", i, head.value) : ""));
    }
    for (std::int64_t i = 0; i < head.key.rows && !same; ++i) {
      lines.push_back(name(axes.keys, i) + vector("K", i, head.key) + vector("V", i, head.value));
    }
    boxes_.add("Query/Key/Value", lines);
  }

  void weighted_sum(const HeadValues& head, const AttentionAxes& axes, std::int64_t row) {
    Lines lines{"(each Value × its attention weight)",
                "Context = ← " + quoted(axes.queries.pieces[static_cast<std::size_t>(row)])};
    std::vector<float> context(static_cast<std::size_t>(head.value.columns), 0.0f);
    for (std::int64_t j = 0; j < head.value.rows; ++j) {
      const float weight = head.weights->at(row, j);
      for (std::size_t d = 0; d < context.size(); ++d) {
        context[d] += weight * head.value.at(j, static_cast<std::int64_t>(d));
      }
      if (double{weight} < 0.005) continue;
      lines.push_back(fmt::format("{} × V{:<3} {}", number(double{weight}), j + 1,
                                  vector_text(head.value.row(j), 3)));
    }
    lines.push_back("= " + vector_text(context));
    boxes_.add("Weighted sum", lines);
  }

  void heads_side_by_side(const InspectedPlace& place, std::int64_t row) {
    Lines lines;
    for (const InspectedHead& head : inspection_.attention) {
      InspectedPlace same = head.place;
      same.head = place.head;
      if (!(same == place)) continue;
      const ValueMatrix context =
          of_head(inspection_, "attention_context", head.place, inspection_.model.head_width);
      lines.push_back(fmt::format(
          "Head {}: {}{}", head.place.head + 1,
          left_aligned(head.kind.name == "mixed"
                           ? "mixed"
                           : fmt::format("{} {:.2f}", head.kind.name, head.kind.measure),
                       16),
          context.values.empty() ? "" : vector_text(context.row(row), 3)));
    }
    boxes_.add("Concat: heads side by side", lines);
  }

  void add_and_norm(const std::string& stack, int layer, const std::string& part,
                    const InspectedText& words, const char* branch_tap) {
    const ValueMatrix *sum = tap("residual_sum", stack, layer, part),
                      *normed = tap("norm_output", stack, layer, part),
                      *branch = tap(branch_tap, stack, layer, part);
    if (sum == nullptr || normed == nullptr || branch == nullptr) return;
    const std::int64_t row = chosen_row(selection_, words);
    const bool pre = inspection_.model.norm == "pre";
    std::vector<float> before(sum->row(row).begin(), sum->row(row).end());
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i] -= branch->at(row, static_cast<std::int64_t>(i));
    }
    Lines lines{quoted(words.pieces[static_cast<std::size_t>(row)]),
                vector_text(before, 2) + " + " + vector_text(branch->row(row), 2) + " = " +
                    vector_text(sum->row(row), 2)};
    const auto [mean, deviation] = statistics(pre ? std::span<const float>(before) : sum->row(row));
    const auto [mean_after, deviation_after] = statistics(normed->row(row));
    lines.push_back(fmt::format("{}: mean {} → {}, deviation {} → {}",
                                pre ? "Norm, before the sub-layer" : "Norm", number(mean),
                                number(mean_after), number(deviation), number(deviation_after)));
    lines.push_back("→ " + vector_text((pre ? sum : normed)->row(row)));
    boxes_.add(pre ? "Add (norm first)" : "Add & Norm", lines);
  }

  void predictions() {
    for (std::size_t i = 0; i < inspection_.steps.size(); ++i) {
      const InspectedStep& step = inspection_.steps[i];
      if (!selects(selection_, inspection_, step)) continue;
      Lines lines;
      for (const TokenProbability& token : step.best) {
        lines.push_back(fmt::format("{} {} → {:>6.2f}% {}", named(token.piece),
                                    right_aligned(number(token.logit), 8), 100 * token.probability,
                                    token.id == step.chosen.id ? "← chosen" : ""));
      }
      boxes_.add(fmt::format("Step {}: logits → Softmax", i + 1), lines);
    }
  }

  const Inspection& inspection_;
  const InspectionSelection& selection_;
  NoteBoxes boxes_;
};

// The head that the arithmetic shows by default: one that aligns target and source, or the first.
InspectedPlace arithmetic_place(const Inspection& inspection,
                                const InspectionSelection& selection) {
  const auto& alignment = inspection.alignment;
  const InspectedHead* first = nullptr;
  for (const InspectedHead& head : inspection.attention) {
    if (!selection.includes(head.place)) continue;
    const bool aligns =
        alignment && attention_name(head.place) == "cross" &&
        head.place.layer == alignment->layer &&
        std::ranges::find(alignment->heads, head.place.head) != alignment->heads.end();
    if (aligns) return head.place;
    if (first == nullptr) first = &head;
  }
  if (first == nullptr) throw UsageError("this model has no attention to show.");
  return first->place;
}

std::string factor(float value) {
  const std::string text = number(double{value}, 3);
  return text.starts_with("-") ? "(" + text + ")" : text;
}

// "0.120×0.330 + (-0.500)×1.020 = …" in several lines.
Lines sum_lines(std::string begin, const std::vector<std::pair<float, float>>& terms,
                const std::string& total, int width) {
  std::vector<std::string> parts{std::move(begin)};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    parts.push_back((i > 0 ? "+ " : "") + factor(terms[i].first) + "×" + factor(terms[i].second));
  }
  parts.push_back("= " + total);
  return wrapped(parts, width, 4);
}

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

}  // namespace

std::string walk_text(const Inspection& inspection, const InspectionSelection& selection,
                      int width) {
  return Walk(inspection, selection, width).text();
}

std::string arithmetic_text(const Inspection& inspection, const InspectionSelection& selection,
                            int width) {
  const InspectedPlace place = arithmetic_place(inspection, selection);
  const HeadValues head = head_values(inspection, place);
  const AttentionAxes axes = axes_of(inspection, place);
  if (head.query.values.empty() || !head.has_scores()) {
    throw UsageError("the numbers of this attention were not recorded.");
  }
  const std::int64_t row = chosen_row(selection, axes.queries);
  const std::string query = quoted(axes.queries.pieces[static_cast<std::size_t>(row)]);
  const auto key_name = [&](std::int64_t j) {
    return quoted(axes.keys.pieces[static_cast<std::size_t>(j)]);
  };
  NoteBoxes boxes(width);
  boxes.heading(fmt::format("{} layer {}, {}, head {}, query {}", place.stack, place.layer + 1,
                            place.part, place.head + 1, query));
  const std::int64_t visible = head.is_causal() ? row + 1 : head.weights->columns;
  const bool additive = head.scaled == nullptr;

  Lines products;
  for (std::int64_t j = 0; j < visible; ++j) {
    std::vector<std::pair<float, float>> terms;
    for (std::int64_t d = 0; d < head.query.columns && !additive; ++d) {
      terms.emplace_back(head.query.at(row, d), head.key.at(j, d));
    }
    const std::string total = number(double{head.scores->at(row, j)}, 3) + "   ← " + key_name(j);
    if (additive) {
      products.push_back(fmt::format("v · tanh(Q{} + K{}) = {}", row + 1, j + 1, total));
    } else {
      append(products, sum_lines(fmt::format("Q{} · K{} =", row + 1, j + 1), terms, total,
                                 boxes.inner_width()));
    }
  }
  boxes.add("Query · Key", products);

  if (head.is_scaled() || head.biased != nullptr) {
    Lines scaled;
    for (std::int64_t j = 0; j < visible; ++j) {
      std::string line = number(double{head.scores->at(row, j)}, 3);
      if (head.is_scaled()) {
        line += fmt::format(" ÷ √{} = {}", head.query.columns,
                            number(double{head.scaled->at(row, j)}, 3));
      }
      if (head.biased != nullptr) {
        const double biased = double{head.biased->at(row, j)};
        line += fmt::format("; + bias {} = {}", number(biased - double{head.scaled->at(row, j)}, 3),
                            number(biased, 3));
      }
      scaled.push_back(line + "   ← " + key_name(j));
    }
    boxes.add(head.biased != nullptr ? "Scale and bias" : "Scale", scaled);
  }

  Lines softmax;
  double sum = 0;
  const std::span<const float> scores = head.masked->row(row);
  const double largest = double{*std::max_element(scores.begin(), scores.end())};
  for (const float score : scores) sum += std::exp(double{score} - largest);
  softmax.push_back(
      fmt::format("each score minus the largest one, {}, as a power of e", number(largest, 3)));
  for (std::int64_t j = 0; j < head.weights->columns; ++j) {
    const double score = double{scores[static_cast<std::size_t>(j)]};
    softmax.push_back(fmt::format("e^({} − {}) = {} ÷ {} = {}   ← {}", number(score, 3),
                                  number(largest, 3), number(std::exp(score - largest), 3),
                                  number(sum, 3), number(double{head.weights->at(row, j)}, 3),
                                  key_name(j)));
  }
  boxes.add("Softmax", softmax);

  if (!head.value.values.empty()) {
    Lines context;
    for (std::int64_t d = 0; d < head.value.columns; ++d) {
      std::vector<std::pair<float, float>> terms;
      double total = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        terms.emplace_back(head.weights->at(row, j), head.value.at(j, d));
        total += double{head.weights->at(row, j)} * double{head.value.at(j, d)};
      }
      append(context, sum_lines(fmt::format("Context[{}] =", d + 1), terms, number(total, 3),
                                boxes.inner_width()));
    }
    boxes.add("Weighted sum of the Values", context);
  }
  return boxes.text();
}

}  // namespace nunchi
