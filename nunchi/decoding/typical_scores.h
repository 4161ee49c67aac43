// How likely a model finds its own translations of text like its training data. A translation that
// is clearly less likely usually has a source of another kind.
//
// The score of a translation is the mean log-probability of its tokens, the end token included. Its
// usual values differ from model to model, so they are measured on the validation data when a run
// ends and stored in the model folder (decoding/generation_config.h).
#pragma once

#include <optional>
#include <vector>

namespace nunchi {

struct TypicalScores {
  double median = 0;
  double low = 0;  // the 1st percentile

  bool operator==(const TypicalScores&) const = default;

  // Whether a score is clearly below the usual ones: further below the 1st percentile than the 1st
  // percentile is below the median, and at least kMinDistance below it.
  bool is_unlikely(double score) const;
  static constexpr double kMinDistance = 0.05;

  static void visit_fields(auto& visitor, auto& scores) {
    visitor.number("median", scores.median, -kMaxScore, 0);
    visitor.number("percentile_1", scores.low, -kMaxScore, 0);
  }

 private:
  static constexpr double kMaxScore = 1e6;
};

// Fewer scores say too little about the 1st percentile.
inline constexpr std::size_t kMinTypicalScores = 100;

// None for fewer than kMinTypicalScores scores.
std::optional<TypicalScores> typical_scores(std::vector<double> scores);

}  // namespace nunchi
