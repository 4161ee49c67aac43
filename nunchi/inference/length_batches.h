// Which texts go together.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace nunchi {

struct BatchLimits {
  std::int64_t tokens = 4096;  // of a batch, about
  std::int64_t texts = std::numeric_limits<std::int64_t>::max();
};

// Numbers of texts of these lengths, of similar length together and longest first: they finish at
// about the same time, and what does not fit into memory shows at once. Texts without tokens are in
// no batch.
std::vector<std::vector<std::size_t>> length_batches(std::span<const std::int64_t> lengths,
                                                     const BatchLimits& limits);

}  // namespace nunchi
