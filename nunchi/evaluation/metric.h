// BLEU, chrF and chrF++ behind one interface: count each line once, then score sums of the counts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/evaluation/bleu.h"
#include "nunchi/evaluation/bootstrap.h"
#include "nunchi/evaluation/files.h"

namespace nunchi::evaluation {

struct MetricOptions {
  std::string tokenizer = "13a";  // how BLEU splits lines into words
  bool lowercase = false;
  bool sentence = false;  // for sentence_scores(): BLEU uses the effective order
  std::optional<BootstrapOptions> bootstrap;
};

struct Metric {
  std::string key, name;  // "chrf++", "chrF2++"
  std::string signature;  // as sacreBLEU writes it
  std::function<Statistics(const Lines& hypotheses)> count;
  ScoreOf score;
  // BLEU with its components; null for chrF.
  std::function<BleuScore(std::span<const std::int64_t> sums)> bleu = nullptr;
};

// `key` is bleu, chrf or chrf++. The references must outlive the metric.
Metric make_metric(const std::string& key, const MetricOptions& options,
                   const std::vector<Lines>& references);

// The score of a system and, if there is one, of a baseline to compare it with.
struct MetricResult {
  std::vector<std::int64_t> sums;
  double score = 0;
  std::optional<Estimate> estimate;  // with a bootstrap
  double baseline_score = 0;
  std::optional<Estimate> baseline;  // with a baseline
  double p_value = 1;
};

// `baseline` is empty if there is none. Without a bootstrap it is ignored.
MetricResult evaluate(const Metric& metric, const Lines& hypotheses, const Lines& baseline,
                      const std::optional<BootstrapOptions>& bootstrap);

// The score of each line on its own.
std::vector<double> sentence_scores(const Metric& metric, const Lines& hypotheses);

}  // namespace nunchi::evaluation
