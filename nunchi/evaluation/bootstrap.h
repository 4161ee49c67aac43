// Confidence intervals and p-values by bootstrap resampling (Koehn 2004), computed as in sacreBLEU.
//
// A resample draws as many lines as the corpus has, with replacement. Draws are Philox of (seed,
// resample, draw), so that all metrics and systems with the same number of lines use the same
// resamples. sacreBLEU draws with NumPy's generator, so its intervals differ from ours as if the
// seed were different.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nunchi/evaluation/statistics.h"

namespace nunchi::evaluation {

struct BootstrapOptions {
  int resamples = 1000;  // at least 1
  std::uint64_t seed = 1;
};

// The score of a corpus with these sums of statistics.
using ScoreOf = std::function<double(std::span<const std::int64_t> sums)>;

// 95% of the resampled scores lie in an interval 2 × `half_width` wide.
struct Estimate {
  double mean = 0;
  double half_width = 0;
};

struct PairedEstimate {
  Estimate system, baseline;
  double p_value = 1;  // probability of a difference this large if both were equally good
};

// One score for each resample.
std::vector<double> resampled_scores(const Statistics& statistics, const ScoreOf& score_of,
                                     const BootstrapOptions& options);

// `scores` must not be empty.
Estimate estimate(std::vector<double> scores);

// The fraction of resamples whose absolute difference exceeds the mean absolute difference by more
// than `difference`, which must not be negative. `difference` itself counts as one more such
// resample. Both systems must have the same resamples in the same order.
double paired_p_value(std::span<const double> system, std::span<const double> baseline,
                      double difference);

// Throws Error unless both systems have the same number of lines.
PairedEstimate paired_bootstrap(const Statistics& system, const Statistics& baseline,
                                const ScoreOf& score_of, const BootstrapOptions& options);

}  // namespace nunchi::evaluation
