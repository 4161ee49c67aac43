#include "nunchi/training/final_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/training/restored_weights.h"
#include "nunchi/training/run/average.h"

namespace nunchi {
namespace {

using Kind = ModelCandidate::Kind;

// The steps that the candidates are made of, the best first.
std::vector<std::int64_t> steps_of(const FinalModelParts& parts) {
  const std::vector<std::int64_t> existing = checkpoint_steps(parts.checkpoints);
  std::vector<std::int64_t> steps;
  for (const StepScore& best : parts.best) {
    // The user may have removed this checkpoint.
    if (std::ranges::binary_search(existing, best.step)) steps.push_back(best.step);
  }
  if (steps.empty()) steps.assign(existing.rbegin(), existing.rend());
  if (steps.empty()) throw Error(parts.checkpoints.string() + " has no checkpoint.");
  steps.resize(std::min(steps.size(), parts.average));
  return steps;
}

bool has_average(const FinalModelParts& parts, std::int64_t step) {
  std::error_code ignored;
  return std::filesystem::exists(checkpoint_path(parts.checkpoints, step) / kAverageFile, ignored);
}

std::optional<double> known_score(const FinalModelParts& parts, std::int64_t step) {
  const auto found = std::ranges::find(parts.best, step, &StepScore::step);
  return found == parts.best.end() ? std::nullopt : std::optional(found->score);
}

std::vector<ModelCandidate> candidates_of(const FinalModelParts& parts) {
  const std::vector<std::int64_t> steps = steps_of(parts);
  const std::int64_t best = steps.front();
  const bool averaged = has_average(parts, best);
  std::vector<ModelCandidate> candidates;
  if (averaged) candidates.push_back({Kind::ema, {best}, known_score(parts, best)});
  if (steps.size() > 1) candidates.push_back({.kind = Kind::mean, .steps = steps});
  candidates.push_back({.kind = Kind::step, .steps = {best}});
  if (!averaged) candidates.back().score = known_score(parts, best);
  // Without validation nothing can be compared, and the first one is taken.
  if (!parts.validate) candidates.resize(1);
  return candidates;
}

ModelMean weights_of(const ModelCandidate& candidate, const FinalModelParts& parts) {
  std::vector<std::filesystem::path> folders;
  for (const std::int64_t step : candidate.steps) {
    folders.push_back(checkpoint_path(parts.checkpoints, step));
  }
  return candidate.kind == Kind::ema ? ModelMean(std::move(folders), kAverageFile)
                                     : ModelMean(std::move(folders));
}

// Sets the scores that are not known; false if a validation was interrupted.
bool validate(std::vector<ModelCandidate>& candidates, const FinalModelParts& parts) {
  const RestoredWeights restored(parts.model.parameters());
  for (ModelCandidate& candidate : candidates) {
    if (candidate.score) continue;
    weights_of(candidate, parts).copy_to(parts.model.parameters());
    const std::optional<ValidationScores> scores = parts.validate();
    if (!scores) return false;
    candidate.score = score_of(*scores, parts.metric);
  }
  return true;
}

}  // namespace

std::optional<ModelChoice> make_final_model(const FinalModelParts& parts) {
  std::vector<ModelCandidate> candidates = candidates_of(parts);
  const bool compares = candidates.size() > 1;
  if (compares && !validate(candidates, parts)) return std::nullopt;
  // Of equal scores the first candidate wins: an average before a single step.
  auto chosen = candidates.begin();
  for (auto other = chosen + 1; other != candidates.end(); ++other) {
    if (!std::isfinite(*other->score)) continue;
    if (!std::isfinite(*chosen->score) || is_better(parts.metric, *other->score, *chosen->score)) {
      chosen = other;
    }
  }
  ModelChoice choice{.chosen = *chosen};
  candidates.erase(chosen);
  choice.others = std::move(candidates);
  if (choice.chosen.score) choice.metric = parts.metric;
  weights_of(choice.chosen, parts).save(parts.run);
  return choice;
}

}  // namespace nunchi
