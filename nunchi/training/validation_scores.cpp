#include "nunchi/training/validation_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/evaluation/perplexity.h"

namespace nunchi {

double score_of(const ValidationScores& scores, ValidationMetric metric) {
  switch (metric) {
    case ValidationMetric::bleu:
      return scores.bleu.value();
    case ValidationMetric::chrf:
      return scores.chrf.value();
    case ValidationMetric::accuracy:
      return scores.accuracy.value();
    case ValidationMetric::loss:
      break;
  }
  return scores.loss;
}

bool is_better(ValidationMetric metric, double a, double b) {
  return metric == ValidationMetric::loss ? a < b : a > b;
}

std::string display_name(ValidationMetric metric) {
  switch (metric) {
    case ValidationMetric::bleu:
      return "BLEU";
    case ValidationMetric::chrf:
      return "chrF";
    case ValidationMetric::accuracy:
      return "accuracy";
    case ValidationMetric::loss:
      break;
  }
  return "loss";
}

std::string score_text(ValidationMetric metric, double score) {
  if (metric == ValidationMetric::loss) return fmt::format("{:.4f}", score);
  if (metric == ValidationMetric::accuracy) return fmt::format("{:.2f} %", 100 * score);
  return fmt::format("{:.2f}", score);
}

std::vector<NamedValue> log_values(const ValidationScores& scores) {
  std::vector<NamedValue> values = {
      {"validation/loss", scores.loss},
      {"validation/perplexity", evaluation::perplexity(scores.loss, 1)}};
  if (scores.bleu) values.emplace_back("validation/bleu", *scores.bleu);
  if (scores.chrf) values.emplace_back("validation/chrf", *scores.chrf);
  if (scores.accuracy) values.emplace_back("validation/accuracy", *scores.accuracy);
  return values;
}

std::string to_text(const ValidationScores& scores) {
  using Metric = ValidationMetric;
  std::string text = "validation loss " + score_text(Metric::loss, scores.loss);
  for (const auto& [metric, score] :
       {std::pair(Metric::bleu, scores.bleu), std::pair(Metric::chrf, scores.chrf),
        std::pair(Metric::accuracy, scores.accuracy)}) {
    if (score) text += ", " + display_name(metric) + " " + score_text(metric, *score);
  }
  return text;
}

bool add_score(TrainerState& state, double score, ValidationMetric metric, std::size_t keep_best) {
  const auto better = [&](double a, double b) { return is_better(metric, a, b); };
  std::vector<StepScore>& best = state.best;
  const bool improved = std::isfinite(score) && (best.empty() || better(score, best.front().score));
  state.validations_without_gain = improved ? 0 : state.validations_without_gain + 1;
  if (!std::isfinite(score)) return false;
  const auto position = std::find_if(
      best.begin(), best.end(), [&](const StepScore& other) { return better(score, other.score); });
  best.insert(position, {state.step, score});
  if (best.size() > keep_best) best.resize(keep_best);
  return improved;
}

}  // namespace nunchi
