// The walk and the arithmetic of an inspection as boxes; for views/inspection_text.cpp.
#pragma once

#include <string>

#include "nunchi/views/inspection_view.h"

namespace nunchi {

// The whole way from text to text.
std::string walk_text(const Inspection& inspection, const InspectionSelection& selection,
                      int width);
// Every term of one query's sums: scores, softmax, weighted sum.
std::string arithmetic_text(const Inspection& inspection, const InspectionSelection& selection,
                            int width);

}  // namespace nunchi
