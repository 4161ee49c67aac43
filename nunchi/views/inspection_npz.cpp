#include "nunchi/views/inspection_npz.h"

#include <array>
#include <map>

#include "nunchi/views/npz.h"

namespace nunchi {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

// "attention.decoder.0.cross_attention"
std::string name_at(const std::string& what, const InspectedPlace& place) {
  std::string name = what + "." + place.stack;
  if (place.layer >= 0) name += "." + std::to_string(place.layer);
  if (!place.part.empty()) name += "." + place.part;
  return name;
}

void add_side(NpzWriter& out, const std::string& name, const InspectedText& text) {
  if (text.pieces.empty()) return;
  out.add(name, text.pieces);
  const std::int64_t count = std::ssize(text.ids);
  if (count > 0)
    out.add(name + "_ids", std::span(&count, 1), std::span<const std::int32_t>(text.ids));
}

void add_matrix(NpzWriter& out, const std::string& name, const ValueMatrix& matrix) {
  out.add(name, std::array{matrix.rows, matrix.columns}, std::span<const float>(matrix.values));
}

void add_list(NpzWriter& out, const std::string& name, const auto& values) {
  const std::int64_t count = std::ssize(values);
  out.add(name, std::span(&count, 1), std::span(values));
}

// Matrices of one name and place, one for each head: [heads, rows, columns].
class HeadArrays {
 public:
  void add(const std::string& name, const ValueMatrix& matrix) {
    Array& array = arrays_[name];
    if (array.values.empty()) order_.push_back(name);
    array.rows = matrix.rows;
    array.columns = matrix.columns;
    array.values.insert(array.values.end(), matrix.values.begin(), matrix.values.end());
    ++array.heads;
  }
  void write(NpzWriter& out) const {
    for (const std::string& name : order_) {
      const Array& array = arrays_.at(name);
      out.add(name, std::array{array.heads, array.rows, array.columns},
              std::span<const float>(array.values));
    }
  }

 private:
  struct Array {
    std::int64_t heads = 0, rows = 0, columns = 0;
    Floats values;
  };
  std::map<std::string, Array> arrays_;
  std::vector<std::string> order_;
};

void add_steps(NpzWriter& out, const std::vector<InspectedStep>& steps) {
  Integers positions, ids, best_ids;
  Floats probabilities, logits, best_probabilities, best_logits;
  std::size_t best = 0;
  for (const InspectedStep& step : steps) {
    positions.push_back(static_cast<std::int32_t>(step.position));
    ids.push_back(step.chosen.id);
    probabilities.push_back(static_cast<float>(step.chosen.probability));
    logits.push_back(static_cast<float>(step.chosen.logit));
    best = step.best.size();
    for (const TokenProbability& token : step.best) {
      best_ids.push_back(token.id);
      best_probabilities.push_back(static_cast<float>(token.probability));
      best_logits.push_back(static_cast<float>(token.logit));
    }
  }
  add_list(out, "step_position", positions);
  add_list(out, "step_id", ids);
  add_list(out, "step_probability", probabilities);
  add_list(out, "step_logit", logits);
  const std::array shape{std::ssize(steps), static_cast<std::int64_t>(best)};
  out.add("best_id", shape, std::span<const std::int32_t>(best_ids));
  out.add("best_probability", shape, std::span<const float>(best_probabilities));
  out.add("best_logit", shape, std::span<const float>(best_logits));
}

void add_beam(NpzWriter& out, const BeamTree& beam) {
  Integers steps, ids, parents, tokens, states;
  Floats scores, log_probabilities;
  for (std::size_t t = 0; t < beam.steps.size(); ++t) {
    for (const BeamNode& node : beam.steps[t]) {
      steps.push_back(static_cast<std::int32_t>(t));
      ids.push_back(node.id);
      parents.push_back(node.parent);
      tokens.push_back(node.token);
      states.push_back(static_cast<std::int32_t>(node.state));
      scores.push_back(static_cast<float>(node.score));
      log_probabilities.push_back(static_cast<float>(node.log_probability));
    }
  }
  add_list(out, "beam.step", steps);
  add_list(out, "beam.id", ids);
  add_list(out, "beam.parent", parents);
  add_list(out, "beam.token", tokens);
  add_list(out, "beam.state", states);
  add_list(out, "beam.score", scores);
  add_list(out, "beam.log_probability", log_probabilities);
}

}  // namespace

std::string to_npz(const Inspection& inspection, const InspectionSelection& selection) {
  using View = InspectionView;
  const bool walk = selection.includes(View::walk);
  NpzWriter out;
  add_side(out, "source", inspection.source);
  add_side(out, "target", inspection.target);
  add_side(out, "input", inspection.input);
  if (walk || selection.includes(View::words)) add_steps(out, inspection.steps);
  HeadArrays arrays;
  if (walk || selection.includes(View::attention) || selection.includes(View::arithmetic)) {
    for (const InspectedHead& head : inspection.attention) {
      if (selection.includes(head.place))
        arrays.add(name_at("attention", head.place), head.weights);
    }
    for (const InspectedWeights& entry : inspection.gradient_weight) {
      if (selection.includes(entry.place)) {
        arrays.add(name_at("gradient_weight", entry.place), entry.weights);
      }
    }
    for (const InspectedWeights& entry : inspection.rollout) {
      if (selection.includes(entry.place)) {
        add_matrix(out, name_at("rollout", entry.place), entry.weights);
      }
    }
  }
  for (const InspectedTensor& tensor : inspection.tensors) {
    const bool is_attention = tensor.place.part.ends_with("attention");
    const bool wanted = walk || (is_attention && selection.includes(View::arithmetic)) ||
                        (selection.includes(View::norms) &&
                         (tensor.tap == "residual_sum" || tensor.tap == "norm_output"));
    if (!wanted || !selection.includes(tensor.place)) continue;
    const std::string name = name_at(tensor.tap, tensor.place);
    if (tensor.place.head < 0) {
      add_matrix(out, name, tensor.values);
    } else {
      arrays.add(name, tensor.values);
    }
  }
  arrays.write(out);
  if (inspection.positions && (walk || selection.includes(View::positions))) {
    const InspectedPositions& positions = *inspection.positions;
    if (!positions.rows.values.empty()) {
      add_matrix(out, "positions.rows", positions.rows);
      add_matrix(out, "positions.similarity", positions.similarity);
    }
    HeadArrays biases;
    for (const ValueMatrix& bias : positions.biases) biases.add("positions.bias", bias);
    biases.write(out);
  }
  if (inspection.beam && (walk || selection.includes(View::beam))) add_beam(out, *inspection.beam);
  return out.finish();
}

}  // namespace nunchi
