#include "nunchi/decoding/typical_scores.h"

#include <algorithm>

namespace nunchi {

bool TypicalScores::is_unlikely(double score) const {
  return score < low - std::max(median - low, kMinDistance);
}

std::optional<TypicalScores> typical_scores(std::vector<double> scores) {
  if (scores.size() < kMinTypicalScores) return std::nullopt;
  std::ranges::sort(scores);
  return TypicalScores{.median = scores[scores.size() / 2], .low = scores[scores.size() / 100]};
}

}  // namespace nunchi
