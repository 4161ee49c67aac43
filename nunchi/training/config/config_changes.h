// The differences between a config and the config of a checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nunchi/training/config/train_config.h"

namespace nunchi {

struct ConfigChange {
  std::string key;  // "training.max_steps", "data.train[1].text"
  std::string old_value,
      new_value;  // as written in YAML; "not set" if only the other config has it
};

// The full key of each scalar of a config with its value as written in YAML, in the config's order.
std::vector<std::pair<std::string, std::string>> config_values(const TrainConfig& config);

// The keys whose values differ, in the order of the config; keys that only the checkpoint has come
// last. Empty if the checkpoint has no config.yaml. Throws Error if its config.yaml is not YAML.
std::vector<ConfigChange> config_changes(const std::filesystem::path& checkpoint,
                                         const TrainConfig& config);

}  // namespace nunchi
