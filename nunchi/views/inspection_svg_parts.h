// The views of inspection_svg(), each as blocks.
#pragma once

#include <vector>

#include "nunchi/views/inspection_view.h"
#include "nunchi/views/svg_blocks.h"

namespace nunchi::inspection_parts {

using Blocks = std::vector<SvgBlock>;

Blocks walk(const Inspection& inspection);
Blocks attention(const Inspection& inspection, const InspectionSelection& selection);
Blocks arithmetic(const Inspection& inspection, const InspectionSelection& selection);
Blocks words(const Inspection& inspection);
Blocks positions(const Inspection& inspection);
Blocks norms(const Inspection& inspection, const InspectionSelection& selection);
Blocks beam(const Inspection& inspection);

// The width of a sheet that blocks are fitted into.
inline constexpr double kSheetWidth = 1100;

// "decoder, layer 2, cross-attention, head 3": counted from 1, as people do.
std::string place_name(const InspectedPlace& place);

}  // namespace nunchi::inspection_parts
