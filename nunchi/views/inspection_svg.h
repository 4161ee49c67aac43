// An inspection as a drawing for slides and papers: `nunchi inspect --format svg`.
//
//   walk        boxes with shapes, from the tokens to the probabilities
//   attention   the heads side by side; one of them large if a head is selected
//   arithmetic  every term of one query's sum, in boxes
//   positions   heat map, curves and similarity
//   words       the likeliest tokens of each step as bars
//   norms       each word's vector before and after the normalisations
//   beam        the tree of the search: kept, dropped, finished
#pragma once

#include <string>

#include "nunchi/views/inspection_view.h"

namespace nunchi {

// The selected view, or all that the inspection has, one below the other. Any text of the
// inspection is allowed. The size is bounded: of long texts and large matrices a part is drawn, and
// the drawing says so. Throws UsageError when the inspection lacks the selected view or place.
std::string inspection_svg(const Inspection& inspection, const InspectionSelection& selection = {});

}  // namespace nunchi
