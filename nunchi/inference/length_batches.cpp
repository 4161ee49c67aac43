#include "nunchi/inference/length_batches.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace nunchi {

std::vector<std::vector<std::size_t>> length_batches(std::span<const std::int64_t> lengths,
                                                     const BatchLimits& limits) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return lengths[i]; });
  std::vector<std::vector<std::size_t>> batches;
  std::int64_t tokens = 0;
  for (const std::size_t i : order) {
    if (lengths[i] == 0) break;  // the remaining texts are empty too
    if (batches.empty() || tokens + lengths[i] > limits.tokens ||
        static_cast<std::int64_t>(batches.back().size()) >= limits.texts) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += lengths[i];
  }
  return batches;
}

}  // namespace nunchi
