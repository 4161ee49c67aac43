// Checkpoints: everything that a run needs to continue as if it had never stopped.
//
//   checkpoints/step-N/
//     config.json, model.safetensors    the model (see models/format/folder.h)
//     optimizer.safetensors             Adam's moments, first_moment.NAME and second_moment.NAME
//                                       for each parameter, and in the metadata its count of steps
//     trainer.json                      the TrainerState
//     config.yaml, tokenizers, generation_config.json    written by the run
//
// So a checkpoint is a model folder too. It appears whole or not at all (AtomicFolder), and numbers
// are read back bit for bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/models/model.h"
#include "nunchi/training/optimizer.h"

namespace nunchi {

struct StepScore {
  std::int64_t step = 0;
  double score = 0;
  bool operator==(const StepScore&) const = default;
};

// The state of a run, beside its weights and moments.
struct TrainerState {
  std::int64_t step = 0;      // steps taken
  std::int64_t epoch = 0;     // of the next batch, from 0
  std::int64_t batch = 0;     // its number in the epoch, from 0
  std::string order_digest;   // of the data and their order, which `batch` refers to
  std::uint64_t seed = 0;     // below 2^63
  std::string config_digest;  // of the run's options

  std::int64_t last_validation = 0;  // the step
  std::int64_t validations_without_gain = 0;
  std::vector<StepScore> best;  // checkpoints by their validation, the best first

  double elapsed_seconds = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t skipped_in_a_row = 0;
  double window_loss = 0;          // the sum since the last line of the log
  std::int64_t window_tokens = 0;  // target tokens of that sum
  bool operator==(const TrainerState&) const = default;
};

// The text of trainer.json, both ways. `where` names the text in errors.
std::string to_json(const TrainerState& state);
TrainerState trainer_state_from_json(std::string_view text, const std::string& where);

struct CheckpointParts {
  const Model& model;
  const AdamOptimizer& optimizer;
  const TrainerState& state;
  // Writes the other files into the given folder, each with AtomicFile.
  const std::function<void(const std::filesystem::path& folder)>& companions;
};

// Writes checkpoints/step-N, N being the state's step. `checkpoints` exists. Throws Error with the
// system's reason when the disk is full or read-only; no partial checkpoint is left then.
void write_checkpoint(const std::filesystem::path& checkpoints, const CheckpointParts& parts);

// The steps that have checkpoints, in ascending order.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& checkpoints);
std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);

// Restores weights, moments and the count of steps. Throws Error, before anything is changed, when
// the checkpoint has another shape than the model, saying where they differ.
TrainerState load_checkpoint(const std::filesystem::path& checkpoint, Model& model,
                             AdamOptimizer& optimizer);

// Removes all checkpoints except the last `keep_last` and those in `best`.
void remove_old_checkpoints(const std::filesystem::path& checkpoints, std::size_t keep_last,
                            std::span<const StepScore> best);

}  // namespace nunchi
