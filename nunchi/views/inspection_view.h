// What a user wants to see of an inspection. The formats of nunchi/views have it in common.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "nunchi/base/options.h"
#include "nunchi/inference/inspection.h"

namespace nunchi {

// The views of the page, in its order.
enum class InspectionView : std::uint8_t {
  walk,
  attention,
  arithmetic,
  words,
  positions,
  norms,
  beam
};

inline constexpr std::array kInspectionViews = {Choice{"walk", InspectionView::walk},
                                                Choice{"attention", InspectionView::attention},
                                                Choice{"arithmetic", InspectionView::arithmetic},
                                                Choice{"words", InspectionView::words},
                                                Choice{"positions", InspectionView::positions},
                                                Choice{"norms", InspectionView::norms},
                                                Choice{"beam", InspectionView::beam}};

// A part of an inspection. What is not set is not restricted; where a view shows one thing of a
// kind, it chooses.
struct InspectionSelection {
  std::optional<InspectionView> view = {};
  std::optional<std::string> attention = {};  // "encoder", "decoder" or "cross"
  std::optional<int> layer = {}, head = {};   // from 0
  std::optional<int> query = {};              // row of an attention matrix, from 0; or
  std::string query_name = {};                // the piece or word of a row, in each text its own
  bool words = false;                         // join pieces into words

  bool includes(InspectionView other) const { return !view || *view == other; }
  // Whether the attention, layer and head fit. A place without a layer or head fits any.
  bool includes(const InspectedPlace& place) const;
  // The row that the query selects among these; nothing if there is no query or no such row.
  std::optional<std::int64_t> row_in(const InspectedText& rows) const;
};

// Whether the query selects this step, or no step of the inspection.
bool selects(const InspectionSelection& selection, const Inspection& inspection,
             const InspectedStep& step);

// "encoder", "decoder" or "cross": the name of a kind of attention in a selection.
std::string attention_name(const InspectedPlace& place);

// The same inspection between words: weights of pieces are joined, and what exists only for pieces
// (taps, norms) is left out.
Inspection joined_into_words(const Inspection& pieces);

// Throws UsageError, naming what there is, when the selection names a place or a view that the
// inspection does not have.
void check_selection(const InspectionSelection& selection, const Inspection& inspection);

}  // namespace nunchi
