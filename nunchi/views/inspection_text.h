// An inspection as text for a terminal, laid out like the boxes of lecture notes.
#pragma once

#include <string>

#include "nunchi/views/inspection_view.h"

namespace nunchi {

struct InspectionTextOptions {
  int width = 80;      // columns of a line, at least 40
  bool color = false;  // see AttentionPictureOptions
};

// The selected view, or the walk. Where the walk shows the numbers of one word, one head and one
// layer, it takes those that are selected, else the first; of the other layers it shows the result.
// The inspection must have what is selected (check_selection).
std::string to_text(const Inspection& inspection, const InspectionSelection& selection = {},
                    const InspectionTextOptions& options = {});

}  // namespace nunchi
