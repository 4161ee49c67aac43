// Grouping texts of similar length into batches.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace nunchi {

struct BatchLimits {
  std::int64_t tokens = 4096;  // of a batch; a longer text is a batch of its own
  std::int64_t texts = std::numeric_limits<std::int64_t>::max();
};

// Indices of the texts of each batch. Texts are sorted by length, longest first: those of a batch
// finish at about the same time, and a batch that does not fit into memory fails at once. Texts
// without tokens are in no batch.
std::vector<std::vector<std::size_t>> length_batches(std::span<const std::int64_t> lengths,
                                                     const BatchLimits& limits);

}  // namespace nunchi
