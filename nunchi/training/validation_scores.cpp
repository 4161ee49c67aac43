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
  std::string text = fmt::format("validation loss {:.4f}", scores.loss);
  if (scores.bleu) text += fmt::format(", BLEU {:.2f}", *scores.bleu);
  if (scores.chrf) text += fmt::format(", chrF {:.2f}", *scores.chrf);
  if (scores.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *scores.accuracy);
  return text;
}

bool add_score(TrainerState& state, double score, ValidationMetric metric, std::size_t keep_best) {
  const bool lower_is_better = metric == ValidationMetric::loss;
  const auto better = [&](double a, double b) { return lower_is_better ? a < b : a > b; };
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
