// The model of a finished run: the mean of its best checkpoints, unless a single checkpoint, or the
// moving average of the weights if the run has one, scores better.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>

#include "nunchi/models/model.h"
#include "nunchi/training/run/model_choice.h"
#include "nunchi/training/validation_scores.h"

namespace nunchi {

struct FinalModelParts {
  Model& model;  // validated with the weights of each candidate; then its own weights are restored
  std::filesystem::path run;  // the run's folder, which becomes a model folder
  std::filesystem::path checkpoints;
  // Validated steps, best first; empty without validation. The score of a checkpoint with a moving
  // average is the average's.
  std::span<const StepScore> best;
  std::size_t average = 1;  // number of checkpoints in the mean
  ValidationMetric metric = ValidationMetric::loss;
  // Measures `model`; returns no scores if it was interrupted. Empty: nothing is validated, and the
  // mean of the last checkpoints becomes the model.
  const std::function<std::optional<ValidationScores>()>& validate;
};

// Validates the candidates that have no score yet and writes the best one into the run's folder.
// Returns none, and leaves the folder unchanged, if a validation was interrupted.
std::optional<ModelChoice> make_final_model(const FinalModelParts& parts);

}  // namespace nunchi
