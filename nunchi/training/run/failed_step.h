// Saves a step whose loss or gradients were not finite, with the data needed to repeat it.
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
  const StepReport& report;
  std::string operation;  // the first operation whose result was not finite
  std::span<const HostBatch> batches;
};

// Writes FOLDER/step-N.json and returns its path; creates the folder if it is missing. The file has
// the step's numbers and, for each micro-batch, its epoch and number, the indices of its pairs and
// their tokens.
std::filesystem::path write_failed_step(const std::filesystem::path& folder,
                                        const FailedStep& failed);

}  // namespace nunchi
