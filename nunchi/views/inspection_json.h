// An inspection as JSON: what `nunchi inspect --format json` prints and what the page shows
// (web/README.md). A masked score, -∞, is null.
#pragma once

#include <span>
#include <string>

#include "nunchi/views/inspection_view.h"

namespace nunchi {

// One inspection, every number with six digits.
std::string to_json(const Inspection& inspection, const InspectionSelection& selection = {});

// A checkpoint of a training run, with what its validation measured.
struct InspectedCheckpoint {
  std::string name;
  std::int64_t step = 0;
  std::optional<double> loss = {};
  std::string metric = {};  // the name; empty: none was measured
  double score = 0;
};

// The payload of a page, of at most about `bytes` bytes. Large matrices are written in base64, as
// half floats or bytes; taps that do not fit are left out, the least important ones first. With
// checkpoints, there is one for each inspection.
std::string page_payload(std::span<const Inspection> inspections,
                         std::span<const InspectedCheckpoint> checkpoints = {},
                         std::size_t bytes = 9'000'000);

// {"inspections": …, "checkpoints": …}, with numbers as in to_json.
std::string to_json(std::span<const Inspection> inspections,
                    std::span<const InspectedCheckpoint> checkpoints,
                    const InspectionSelection& selection = {});

}  // namespace nunchi
