#include "nunchi/views/inspection_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// Each word as one piece.
InspectedText words_as_pieces(const InspectedText& text) {
  InspectedText words{
      .pieces = text.word_texts, .ids = {}, .words = {}, .word_texts = text.word_texts};
  for (int i = 0; i < static_cast<int>(text.words.size()); ++i) words.words.emplace_back(i, i + 1);
  return words;
}

std::string list_of(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

std::string attention_name(const InspectedPlace& place) {
  return place.part == "cross_attention" || place.part == "state_attention" ? "cross" : place.stack;
}

bool InspectionSelection::includes(const InspectedPlace& place) const {
  const bool is_attention = place.part.ends_with("attention");
  if (attention && is_attention && attention_name(place) != *attention) return false;
  if (layer && place.layer >= 0 && place.layer != *layer) return false;
  return !head || place.head < 0 || place.head == *head;
}

std::optional<std::int64_t> InspectionSelection::row_in(const InspectedText& rows) const {
  if (query) {
    return *query < std::ssize(rows.pieces) ? std::optional<std::int64_t>(*query) : std::nullopt;
  }
  if (query_name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < rows.pieces.size(); ++i) {
    if (rows.pieces[i] == query_name || rows.pieces[i] == "▁" + query_name) {
      return static_cast<std::int64_t>(i);
    }
  }
  for (std::size_t w = 0; w < rows.words.size(); ++w) {
    if (rows.word_texts[w] == query_name) return rows.words[w].first;
  }
  return std::nullopt;
}

bool selects(const InspectionSelection& selection, const Inspection& inspection,
             const InspectedStep& step) {
  const bool fills = inspection.task == Inspection::Task::fill;
  const auto row = selection.row_in(fills ? inspection.input : inspection.target);
  return !row || step.position == *row;
}

Inspection joined_into_words(const Inspection& pieces) {
  Inspection words = pieces;
  words.tensors.clear();
  words.norms.clear();
  words.source = words_as_pieces(pieces.source);
  words.target = words_as_pieces(pieces.target);
  words.input = words_as_pieces(pieces.input);
  const auto join = [&](const InspectedPlace& place, ValueMatrix& weights) {
    const auto [queries, keys] = axes_of(pieces, place);
    weights = joined_into_words(weights, queries.words, keys.words);
  };
  for (InspectedHead& head : words.attention) join(head.place, head.weights);
  for (InspectedWeights& entry : words.rollout) join(entry.place, entry.weights);
  for (InspectedWeights& entry : words.gradient_weight) join(entry.place, entry.weights);
  if (words.alignment) {
    join({.stack = "decoder", .part = "cross_attention"}, words.alignment->weights);
  }
  return words;
}

void check_selection(const InspectionSelection& selection, const Inspection& inspection) {
  const auto names_place = selection.attention || selection.layer || selection.head;
  if (inspection.attention.empty() && (names_place || selection.view == InspectionView::attention ||
                                       selection.view == InspectionView::arithmetic)) {
    throw UsageError("this model has no attention to show.");
  }
  const auto any = [&](const InspectionSelection& part) {
    return std::ranges::any_of(
        inspection.attention, [&](const InspectedHead& head) { return part.includes(head.place); });
  };
  if (names_place && !any(selection)) {
    std::set<std::string> kinds;
    int layers = 0, heads = 0;
    for (const InspectedHead& head : inspection.attention) {
      kinds.insert(attention_name(head.place));
      if (selection.attention && attention_name(head.place) != *selection.attention) continue;
      layers = std::max(layers, head.place.layer + 1);
      heads = std::max(heads, head.place.head + 1);
    }
    if (layers == 0) {
      throw UsageError(fmt::format("this model has no attention '{}', only {}.",
                                   *selection.attention, list_of(kinds)));
    }
    throw UsageError(
        fmt::format("there is no such place: this model has layers 1 to {} with heads 1 to {}.",
                    layers, heads));
  }
  const auto need = [&](InspectionView view, bool exists, const char* reason) {
    if (selection.view == view && !exists) throw UsageError(reason);
  };
  need(InspectionView::positions, inspection.positions.has_value(),
       "this model has no positions to show.");
  need(InspectionView::norms, !inspection.norms.empty(), "this model has no norms to show.");
  need(InspectionView::beam, inspection.beam.has_value(),
       "there was no search to show: the target was given, or the model does not generate.");
  if (!selection.query && selection.query_name.empty()) return;
  std::int64_t rows = 0;
  for (const InspectedHead& head : inspection.attention) {
    if (!selection.includes(head.place)) continue;
    if (selection.row_in(axes_of(inspection, head.place).queries)) return;
    rows = std::max(rows, head.weights.rows);
  }
  if (!selection.query) {
    throw UsageError("no query is '" + selection.query_name +
                     "': give a piece, a word or its number from 1.");
  }
  throw UsageError(
      fmt::format("there is no query {}: the queries are 1 to {}.", *selection.query + 1, rows));
}

}  // namespace nunchi
