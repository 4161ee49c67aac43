// What a run's log says about its checkpoints.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace nunchi {

struct CheckpointScores {
  std::int64_t step = 0;
  std::filesystem::path folder;
  std::optional<double> loss = {};  // of the validation set; of the training set without one
  std::string metric = {};  // name of the validation's metric besides the loss; may be empty
  double score = 0;         // by that metric
};

// The checkpoints of a run in ascending order of their steps, each with the newest values that its
// log.jsonl has up to that step. Throws Error when the folder has no checkpoints. A log that is
// missing or damaged only leaves values out.
std::vector<CheckpointScores> checkpoint_scores(const std::filesystem::path& run);

}  // namespace nunchi
