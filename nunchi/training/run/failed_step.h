// A step whose loss or gradients were not finite, on disk: enough to find out why.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "nunchi/data/batch_queue.h"
#include "nunchi/training/learner.h"

namespace nunchi {

struct FailedStep {
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  const LearnedStep& learned;
  std::string operation;  // which made the first number that was not finite
  std::span<const HostBatch> batches;
};

// Writes FOLDER/step-N.json, making the folder if need be: the step's numbers, and of each
// micro-batch its place in the data, the pairs' numbers and their tokens. Returns its path.
std::filesystem::path write_failed_step(const std::filesystem::path& folder,
                                        const FailedStep& failed);

}  // namespace nunchi
