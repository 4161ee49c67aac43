// What a search looks for: its units and their limits, on the host.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "nunchi/decoding/search.h"

namespace nunchi {

// A unit is a sentence that is looked for: of each source one, or one for each sample.
struct Units {
  std::int64_t count = 0;
  std::int64_t beam = 1;
  std::int64_t longest = 0;                           // tokens of a hypothesis at most
  std::int64_t stride = 0;                            // tokens that a hypothesis has room for
  std::vector<std::int32_t> source;                   // [units]
  std::vector<std::int64_t> stream;                   // [units] number for draws
  std::vector<std::int32_t> max_length;               // [units]
  std::vector<std::int32_t> prefix_length;            // [units]
  std::vector<std::span<const std::int32_t>> prefix;  // [units]

  // Tokens beyond the prefix that a hypothesis can get.
  std::int64_t most_generated() const {
    std::int64_t most = 0;
    for (std::size_t u = 0; u < max_length.size(); ++u) {
      most = std::max<std::int64_t>(most, max_length[u] - prefix_length[u]);
    }
    return most;
  }
};

// Throws Error for a prefix that leaves no room.
Units make_units(const SequenceModel& model, const SearchInput& input,
                 const SearchOptions& options);

}  // namespace nunchi
