// BLEU, chrF and chrF++ behind one face: count each line once, then score sums of the counts.
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
  std::string tokenizer = "13a";  // BLEU's words
  bool lowercase = false;
  bool sentence =
      false;  // lines are scored alone: BLEU leaves out orders that a line is too short for
  std::optional<BootstrapOptions> bootstrap;
};

struct Metric {
  std::string key, name;  // "chrf++", "chrF2++"
  std::string signature;  // as sacreBLEU writes it
  std::function<Statistics(const Lines& hypotheses)> count;
  ScoreOf score;
  // What there is to say besides the score; nothing for chrF.
  std::function<BleuScore(std::span<const std::int64_t> sums)> bleu = nullptr;
};

// `key` is bleu, chrf or chrf++. The references outlive it.
Metric make_metric(const std::string& key, const MetricOptions& options,
                   const std::vector<Lines>& references);

// What one metric says of a system, and of a second one to compare it with.
struct MetricResult {
  std::vector<std::int64_t> sums;
  double score = 0;
  std::optional<Estimate> estimate;  // with a bootstrap
  double baseline_score = 0;
  std::optional<Estimate> baseline;  // with a second system
  double p_value = 1;
};

// `baseline` is empty when there is no second system; it needs a bootstrap.
MetricResult evaluate(const Metric& metric, const Lines& hypotheses, const Lines& baseline,
                      const std::optional<BootstrapOptions>& bootstrap);

// Of every line alone.
std::vector<double> sentence_scores(const Metric& metric, const Lines& hypotheses);

}  // namespace nunchi::evaluation
