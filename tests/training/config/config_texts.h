// Small training configs as text, and the errors of reading them.
#pragma once

#include <string>
#include <vector>

#include "nunchi/training/config/train_config.h"
#include "tests/errors.h"

namespace nunchi::testing {

// A translation model with only the keys that are required, and validation data.
inline constexpr const char* kMinimal =
    "output: run\n"
    "model: {family: transformer}\n"
    "data: {train: {source: a.en, target: a.de}, validation: {source: b.en, target: b.de}}\n"
    "training: {max_steps: 10}\n";

// The same for a language model.
inline constexpr const char* kMinimalText =
    "output: run\n"
    "model: {family: gpt}\n"
    "data: {train: {text: a.txt}, validation: {text: b.txt}}\n"
    "training: {max_steps: 10}\n";

inline TrainConfig config_of(const std::string& text,
                             const std::vector<std::string>& assignments = {}) {
  Options options = Options::from_yaml(text, "a.yaml");
  for (const std::string& assignment : assignments) options.set(assignment);
  return read_train_config(options);
}

inline std::string config_error(const std::string& text,
                                const std::vector<std::string>& assignments = {}) {
  return error_of([&] { config_of(text, assignments); });
}

// The error of the minimal config with these assignments, or "no error".
inline std::string minimal_error(const std::vector<std::string>& assignments) {
  return config_error(kMinimal, assignments);
}

}  // namespace nunchi::testing
