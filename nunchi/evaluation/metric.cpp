#include "nunchi/evaluation/metric.h"

#include "nunchi/evaluation/chrf.h"
#include "nunchi/evaluation/signature.h"

namespace nunchi::evaluation {
namespace {

Metric make_bleu(const BleuOptions& options, const std::vector<Lines>& references,
                 const Setting& setting) {
  return {.key = "bleu",
          .name = "BLEU",
          .signature = signature(options, setting),
          .count =
              [&references, options](const Lines& hypotheses) {
                return bleu_statistics(hypotheses, references, options);
              },
          .score = [options](auto sums) { return bleu_of(sums, options).score; },
          .bleu = [options](auto sums) { return bleu_of(sums, options); }};
}

Metric make_chrf(const std::string& key, const ChrfOptions& options,
                 const std::vector<Lines>& references, const Setting& setting) {
  return {.key = key,
          .name = name_of(options),
          .signature = signature(options, setting),
          .count =
              [&references, options](const Lines& hypotheses) {
                return chrf_statistics(hypotheses, references, options);
              },
          .score = [options](auto sums) { return chrf_of(sums, options); }};
}

Metric make_ter(const TerOptions& options, const std::vector<Lines>& references,
                const Setting& setting) {
  const std::size_t count = references.size();
  return {.key = "ter",
          .name = "TER",
          .signature = signature(options, setting),
          .count =
              [&references, options](const Lines& hypotheses) {
                return ter_statistics(hypotheses, references, options);
              },
          .score = [count](auto sums) { return ter_of(sums, count).score; },
          .ter = [count](const Statistics& statistics) { return ter_of(statistics, count); }};
}

double score_of(const Metric& metric, const Statistics& statistics) {
  return metric.ter ? metric.ter(statistics).score : metric.score(statistics.sum());
}

}  // namespace

std::vector<std::string> metric_keys() { return {"bleu", "chrf", "chrf++", "ter"}; }

Metric make_metric(const std::string& key, const MetricOptions& options,
                   const std::vector<Lines>& references) {
  const Setting setting{.references = references.size(), .bootstrap = options.bootstrap};
  if (key == "bleu") {
    return make_bleu({.tokenizer = bleu_tokenizer_of(options.tokenizer),
                      .lowercase = options.lowercase,
                      .effective_order = options.sentence,
                      .mecab = options.mecab},
                     references, setting);
  }
  if (key == "ter") return make_ter(options.ter, references, setting);
  const int word_order = key == "chrf++" ? 2 : 0;
  return make_chrf(key, {.word_order = word_order, .lowercase = options.lowercase}, references,
                   setting);
}

MetricResult evaluate(const Metric& metric, const Lines& hypotheses, const Lines& baseline,
                      const std::optional<BootstrapOptions>& bootstrap) {
  const Statistics statistics = metric.count(hypotheses);
  MetricResult result{.sums = statistics.sum()};
  result.score = score_of(metric, statistics);
  if (metric.ter) result.ter = metric.ter(statistics);
  if (!bootstrap) return result;
  if (baseline.empty()) {
    result.estimate = estimate(resampled_scores(statistics, metric.score, *bootstrap));
    return result;
  }
  const Statistics baseline_statistics = metric.count(baseline);
  const auto paired = paired_bootstrap(statistics, baseline_statistics, metric.score, *bootstrap);
  result.estimate = paired.system;
  result.baseline_score = score_of(metric, baseline_statistics);
  result.baseline = paired.baseline;
  result.identical = statistics == baseline_statistics;
  result.p_value = result.identical ? 1 : paired.p_value;
  return result;
}

std::vector<double> sentence_scores(const Metric& metric, const Lines& hypotheses) {
  const Statistics statistics = metric.count(hypotheses);
  std::vector<double> scores;
  for (std::size_t line = 0; line < statistics.line_count(); ++line) {
    const auto counts = statistics.line(line);
    scores.push_back(metric.score(std::vector<std::int64_t>(counts.begin(), counts.end())));
  }
  return scores;
}

}  // namespace nunchi::evaluation
