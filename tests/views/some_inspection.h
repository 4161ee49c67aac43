// An inspection with every part, made of numbers that are easy to recognise.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "nunchi/inference/inspection.h"

namespace nunchi {

inline InspectedText inspected_text(const std::vector<std::string>& pieces) {
  InspectedText text{.pieces = pieces, .ids = {}, .words = {}, .word_texts = pieces};
  for (int i = 0; i < static_cast<int>(pieces.size()); ++i) {
    text.ids.push_back(100 + i);
    text.words.emplace_back(i, i + 1);
  }
  return text;
}

inline ValueMatrix matrix_of(std::int64_t rows, std::int64_t columns, double first) {
  ValueMatrix matrix{rows, columns, {}};
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    matrix.values.push_back(static_cast<float>(std::sin(first + 0.7 * static_cast<double>(i))));
  }
  return matrix;
}

// Rows that sum to 1; with `causal`, later keys have no weight.
inline ValueMatrix weights_of(std::int64_t rows, std::int64_t columns, double sharpness,
                              bool causal) {
  ValueMatrix weights{rows, columns, {}};
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    std::vector<double> row;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double peak = static_cast<double>((r * 3 + 1) % columns);
      const bool hidden = causal && c > r;
      row.push_back(hidden ? 0 : std::exp(-sharpness * std::abs(static_cast<double>(c) - peak)));
      sum += row.back();
    }
    for (const double value : row) weights.values.push_back(static_cast<float>(value / sum));
  }
  return weights;
}

struct InspectionShape {
  std::vector<std::string> source{"▁내일", "▁오후", "▁3시에", "▁서울", "에서", "▁만나요", "</s>"};
  std::vector<std::string> target{"▁Let's", "▁meet", "▁in", "▁Seoul", "▁at", "▁3", "▁PM", "</s>"};
  int layers = 2, heads = 4;
};

// A translation; without a source, a text that is continued.
inline Inspection some_inspection(const InspectionShape& shape = {}) {
  constexpr std::int64_t kWidth = 8;
  Inspection inspection;
  inspection.model = {.name = "runs/test",
                      .family = shape.source.empty() ? "gpt" : "transformer",
                      .parameters = 1234,
                      .width = kWidth,
                      .heads = shape.heads,
                      .head_width = kWidth / shape.heads,
                      .encoder_layers = shape.source.empty() ? 0 : shape.layers,
                      .decoder_layers = shape.layers,
                      .position = "sinusoidal",
                      .norm = "post",
                      .vocabulary = 50};
  inspection.task =
      shape.source.empty() ? Inspection::Task::continue_text : Inspection::Task::translate;
  inspection.source = inspected_text(shape.source);
  inspection.target = inspected_text(shape.target);
  inspection.input = inspected_text(shape.target);
  for (const std::string& piece : shape.source) inspection.source_text += piece;
  for (const std::string& piece : shape.target) inspection.target_text += piece;
  const auto sources = static_cast<std::int64_t>(shape.source.size());
  const auto targets = static_cast<std::int64_t>(shape.target.size());
  const auto add_attention = [&](const std::string& stack, const std::string& part,
                                 std::int64_t rows, std::int64_t keys) {
    for (int layer = 0; layer < shape.layers; ++layer) {
      for (int head = 0; head < shape.heads; ++head) {
        const InspectedPlace place{stack, layer, part, head};
        const bool causal = stack == "decoder" && part == "self_attention";
        inspection.attention.push_back(
            {place, {"mixed", 0.25, {}}, weights_of(rows, keys, 0.4 * (head + 1), causal)});
        for (const char* tap : {"scores", "scaled_scores"}) {
          inspection.tensors.push_back({tap, place, matrix_of(rows, keys, head)});
        }
        ValueMatrix masked = matrix_of(rows, keys, head);
        for (std::int64_t r = 0; r < rows && causal; ++r) {
          for (std::int64_t c = r + 1; c < keys; ++c) {
            masked.values[static_cast<std::size_t>(r * keys + c)] = -INFINITY;
          }
        }
        inspection.tensors.push_back({"masked_scores", place, std::move(masked)});
      }
      const InspectedPlace all{stack, layer, part, -1};
      inspection.tensors.push_back({"query", all, matrix_of(rows, kWidth, 1)});
      inspection.tensors.push_back({"key", all, matrix_of(keys, kWidth, 2)});
      inspection.tensors.push_back({"value", all, matrix_of(keys, kWidth, 3)});
      inspection.tensors.push_back({"attention_context", all, matrix_of(rows, kWidth, 4)});
      inspection.tensors.push_back({"attention_output", all, matrix_of(rows, kWidth, 5)});
      inspection.tensors.push_back({"residual_sum", all, matrix_of(rows, kWidth, 6)});
      inspection.tensors.push_back({"norm_output", all, matrix_of(rows, kWidth, 7)});
      const auto count = static_cast<std::size_t>(rows);
      inspection.norms.push_back({all, std::vector<float>(count, 0.1f),
                                  std::vector<float>(count, 2.5f), std::vector<float>(count, 0.0f),
                                  std::vector<float>(count, 1.0f), std::vector<float>(count, 0.7f),
                                  std::vector<float>(count, 3.0f)});
    }
  };
  if (sources > 0) add_attention("encoder", "self_attention", sources, sources);
  add_attention("decoder", "self_attention", targets, targets);
  if (sources > 0) {
    add_attention("decoder", "cross_attention", targets, sources);
    inspection.alignment = InspectedAlignment{.layer = shape.layers - 1,
                                              .heads = {0, 2},
                                              .weights = weights_of(targets, sources, 1, false)};
  }
  for (const std::string stack : {"encoder", "decoder"}) {
    const std::int64_t rows = stack == "encoder" ? sources : targets;
    for (const char* tap : {"token_embedding", "position", "embedding", "stack_output"}) {
      if (rows > 0)
        inspection.tensors.push_back({tap, {stack, -1, "", -1}, matrix_of(rows, kWidth, 8)});
    }
  }
  for (std::int64_t i = 0; i < targets; ++i) {
    const std::string& piece = shape.target[static_cast<std::size_t>(i)];
    InspectedStep step{i, {piece, 7, 0.6, 3.0}, {}};
    step.best = {{piece, 7, 0.6, 3.0}, {"other", 8, 0.3, 2.0}, {"<third>", 9, 0.05, 1.0}};
    inspection.steps.push_back(std::move(step));
  }
  inspection.positions = InspectedPositions{
      .kind = "sinusoidal", .rows = {64, 16, {}}, .similarity = {64, 64, {}}, .biases = {}};
  for (int p = 0; p < 64; ++p) {
    for (int d = 0; d < 16; ++d) {
      inspection.positions->rows.values.push_back(
          static_cast<float>(d % 2 == 0 ? std::sin(p / std::pow(100.0, d / 16.0))
                                        : std::cos(p / std::pow(100.0, (d - 1) / 16.0))));
    }
    for (int q = 0; q < 64; ++q) {
      inspection.positions->similarity.values.push_back(
          static_cast<float>(1.0 / (1 + std::abs(p - q))));
    }
  }
  BeamTree tree{.size = 2, .steps = {}, .best = {}};
  int next = 1, best = -1, second = -1;
  for (std::int64_t i = 0; i < targets; ++i) {
    const std::string& piece = shape.target[static_cast<std::size_t>(i)];
    const double score = -0.2 * static_cast<double>(i + 1);
    const auto state = i + 1 == targets ? BeamNode::State::finished : BeamNode::State::kept;
    tree.steps.push_back({{next, best, piece, 7, score, -0.2, state, ""},
                          {next + 1, i == 0 ? -1 : (i == 3 ? best : second), "other", 8, score - 1,
                           -0.9, BeamNode::State::kept, ""},
                          {next + 2, second, "third", 9, score - 2, -2.5, BeamNode::State::dropped,
                           "rank 3 of 2 kept"}});
    tree.best.push_back(next);
    best = next;
    second = next + 1;
    next += 3;
  }
  inspection.beam = std::move(tree);
  return inspection;
}

}  // namespace nunchi
