#include "nunchi/evaluation/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nunchi/base/error.h"
#include "nunchi/base/random.h"

namespace nunchi::evaluation {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Adds the counts of one resample's lines to `sums`.
void add_resample(const Statistics& statistics, const philox::Key& key,
                  std::span<std::int64_t> sums) {
  const std::uint64_t lines = statistics.line_count();
  philox::Words words{};
  for (std::uint64_t draw = 0; draw < lines; ++draw) {
    if (draw % 4 == 0) {
      const std::uint64_t counter = draw / 4;
      words = philox::bits(
          {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
          key);
    }
    const auto line = statistics.line((words[draw % 4] * lines) >> 32);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += line[i];
  }
}

}  // namespace

std::vector<double> resampled_scores(const Statistics& statistics, const ScoreOf& score_of,
                                     const BootstrapOptions& options) {
  if (options.resamples < 1) throw UsageError("the bootstrap needs at least one resample.");
  if (statistics.line_count() == 0) throw Error("there are no lines to resample.");
  std::vector<double> scores;
  std::vector<std::int64_t> sums(statistics.width());
  for (int resample = 0; resample < options.resamples; ++resample) {
    std::ranges::fill(sums, 0);
    add_resample(statistics, philox::key_of({options.seed, static_cast<std::uint64_t>(resample)}),
                 sums);
    scores.push_back(score_of(sums));
  }
  return scores;
}

Estimate estimate(std::vector<double> scores) {
  std::ranges::sort(scores);
  const std::size_t left_out = scores.size() / 40;  // 2.5% on either side
  const double width = scores[scores.size() - left_out - 1] - scores[left_out];
  return {mean_of(scores), 0.5 * width};
}

double paired_p_value(std::span<const double> system, std::span<const double> baseline,
                      double difference) {
  std::vector<double> differences(system.size());
  std::ranges::transform(system, baseline, differences.begin(),
                         [](double a, double b) { return std::abs(a - b); });
  const double mean = mean_of(differences);
  const auto larger =
      std::ranges::count_if(differences, [&](double d) { return d - mean > difference; });
  return static_cast<double>(larger + 1) / static_cast<double>(differences.size() + 1);
}

PairedEstimate paired_bootstrap(const Statistics& system, const Statistics& baseline,
                                const ScoreOf& score_of, const BootstrapOptions& options) {
  if (system.line_count() != baseline.line_count()) {
    throw Error(
        fmt::format("a paired bootstrap needs two systems with equally many lines, not {} and {}.",
                    system.line_count(), baseline.line_count()));
  }
  const std::vector<double> system_scores = resampled_scores(system, score_of, options);
  const std::vector<double> baseline_scores = resampled_scores(baseline, score_of, options);
  const double difference = std::abs(score_of(system.sum()) - score_of(baseline.sum()));
  return {estimate(system_scores), estimate(baseline_scores),
          paired_p_value(system_scores, baseline_scores, difference)};
}

}  // namespace nunchi::evaluation
