// Which weights of a finished run became its model, and the scores that decided it. Stored in
// run.json:
//
//   {"format": 1, "model": {"kind": "mean", "steps": [200, 300], "metric": "bleu", "score": 12.5,
//                           "others": [{"kind": "step", "steps": [300], "score": 12.3}]}}
//
// Without validation there are neither scores nor `metric`. A score that is not finite is null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/training/config/train_config.h"

namespace nunchi {

// Weights that can become the model of a run.
struct ModelCandidate {
  enum class Kind : std::uint8_t {
    mean,  // of the weights at several steps
    step,  // the weights at one step
    ema,   // their exponential moving average at one step
  };
  Kind kind = Kind::step;
  std::vector<std::int64_t> steps;  // the best first
  std::optional<double> score;      // by the run's validation metric; empty: not validated
  bool operator==(const ModelCandidate&) const = default;
};

struct ModelChoice {
  ModelCandidate chosen;
  std::vector<ModelCandidate> others;
  std::optional<ValidationMetric> metric;  // of the scores; empty: nothing was validated
  bool operator==(const ModelChoice&) const = default;
};

// "the mean of steps 200, 300: BLEU 12.51 (step 300 alone: 12.34)"
std::string to_text(const ModelChoice& choice);

// The value of "model" in run.json; steps are in ascending order there.
std::string to_json(const ModelChoice& choice);

// The choice in the run.json of a folder; none if the folder is not a finished run. Throws Error
// with the name of the file if its "model" is not valid.
std::optional<ModelChoice> read_model_choice(const std::filesystem::path& folder);

}  // namespace nunchi
