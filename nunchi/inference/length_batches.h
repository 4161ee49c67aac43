// Groups texts of similar length into batches.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace nunchi {

// Maximum size of a batch.
struct BatchLimits {
  std::int64_t tokens = 4096;  // a longer text is the only one of its batch
  std::int64_t texts = std::numeric_limits<std::int64_t>::max();
};

// Returns the indices of the texts of each batch. Texts are sorted by length, longest first: the
// texts of a batch finish at about the same time, and if batches do not fit into memory, the first
// one fails. Texts without tokens are in no batch.
std::vector<std::vector<std::size_t>> length_batches(std::span<const std::int64_t> lengths,
                                                     const BatchLimits& limits);

}  // namespace nunchi
