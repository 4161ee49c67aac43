// The differences between a config and the one that a checkpoint was made with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nunchi/training/config/train_config.h"

namespace nunchi {

struct ConfigChange {
  std::string key;          // "training.max_steps", "data.train[1].text"
  std::string before, now;  // as they would be written; "not there" if only the other has it
};

// In the order of the config's keys; those that only the checkpoint has come last. Empty if the
// checkpoint has no config.yaml. Throws Error if its config.yaml is not YAML.
std::vector<ConfigChange> config_changes(const std::filesystem::path& checkpoint,
                                         const TrainConfig& config);

}  // namespace nunchi
