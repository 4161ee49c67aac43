// BLEU, chrF, chrF++ and TER behind one interface: count each line once, then score sums of the
// counts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/evaluation/bleu.h"
#include "nunchi/evaluation/bootstrap.h"
#include "nunchi/evaluation/files.h"
#include "nunchi/evaluation/ter.h"

namespace nunchi::evaluation {

struct MetricOptions {
  std::string tokenizer = "13a";  // how BLEU splits lines into words
  MecabFiles mecab;               // for the tokenizers ja-mecab and ko-mecab
  bool lowercase = false;         // of BLEU and chrF; TER has an option of its own
  TerOptions ter;
  bool sentence = false;  // for sentence_scores(): BLEU uses the effective order
  std::optional<BootstrapOptions> bootstrap;
};

struct Metric {
  std::string key, name;  // "chrf++", "chrF2++"
  std::string signature;  // as sacreBLEU writes it
  std::function<Statistics(const Lines& hypotheses)> count;
  ScoreOf score;
  // BLEU and TER with their components; null for other metrics.
  std::function<BleuScore(std::span<const std::int64_t> sums)> bleu = nullptr;
  std::function<TerScore(const Statistics& statistics)> ter = nullptr;
};

// bleu, chrf, chrf++ and ter.
std::vector<std::string> metric_keys();
// `key` is one of metric_keys(). The references must outlive the metric.
Metric make_metric(const std::string& key, const MetricOptions& options,
                   const std::vector<Lines>& references);

// The score of a system and, if there is one, of a baseline to compare it with.
struct MetricResult {
  std::vector<std::int64_t> sums;
  double score = 0;
  std::optional<TerScore> ter;       // for TER
  std::optional<Estimate> estimate;  // with a bootstrap
  double baseline_score = 0;
  std::optional<Estimate> baseline;  // with a baseline
  // No line has other counts in the baseline. Then the p-value is 1, where sacreBLEU's is the
  // smallest that its number of resamples allows.
  bool identical = false;
  double p_value = 1;
};

// `baseline` is empty if there is none. Without a bootstrap it is ignored.
MetricResult evaluate(const Metric& metric, const Lines& hypotheses, const Lines& baseline,
                      const std::optional<BootstrapOptions>& bootstrap);

// The score of each line on its own.
std::vector<double> sentence_scores(const Metric& metric, const Lines& hypotheses);

}  // namespace nunchi::evaluation
