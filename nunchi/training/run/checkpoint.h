// A checkpoint has everything that a run needs to continue as if it had never stopped.
//
//   checkpoints/step-N/
//     config.json, model.safetensors    the model (see models/format/folder.h)
//     optimizer.safetensors             Adam's moments, first_moment.NAME and second_moment.NAME
//                                       for each parameter; the metadata have its step count
//     ema.safetensors                   with training.ema: the moving average of the weights, with
//                                       the names of the parameters
//     trainer.json                      the TrainerState
//     algorithms.txt                    GPU only: the matrix product algorithms that were chosen
//     config.yaml, tokenizers, generation_config.json    written by the run
//
// So a checkpoint is also a model folder. It appears whole or not at all (AtomicFolder), and
// numbers are restored bit for bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/models/model.h"
#include "nunchi/training/moving_average.h"
#include "nunchi/training/optimizer.h"

namespace nunchi {

struct StepScore {
  std::int64_t step = 0;
  double score = 0;
  bool operator==(const StepScore&) const = default;
};

// The state of a run, except weights and moments.
struct TrainerState {
  std::int64_t step = 0;      // steps taken
  std::int64_t epoch = 0;     // epoch of the next batch, from 0
  std::int64_t batch = 0;     // number of the next batch in its epoch, from 0
  std::string order_digest;   // digest of the data and their order, which `batch` refers to
  std::uint64_t seed = 0;     // below 2^63
  std::string config_digest;  // digest of the run's config

  std::int64_t last_validation = 0;  // step of the last validation
  std::int64_t validations_without_gain = 0;
  std::vector<StepScore> best;  // the best validated steps, best first

  std::int64_t max_rows = 0;  // see Learner::max_rows

  double elapsed_seconds = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t skipped_in_a_row = 0;
  double window_loss = 0;          // sum of the losses since the last line of the log
  std::int64_t window_tokens = 0;  // target tokens of window_loss
  bool operator==(const TrainerState&) const = default;
};

// Write and read the text of trainer.json. `where` names the text in error messages.
std::string to_json(const TrainerState& state);
TrainerState trainer_state_from_json(std::string_view text, const std::string& where);

struct CheckpointParts {
  const Model& model;
  const AdamOptimizer& optimizer;
  const TrainerState& state;
  // Writes the other files into the given folder, each with AtomicFile.
  const std::function<void(const std::filesystem::path& folder)>& write_companions;
  const MovingAverage* average = nullptr;  // null: the run has none
};

// Writes checkpoints/step-N, where N is the state's step. The folder `checkpoints` must exist.
// Throws Error with the system's error message when the disk is full or read-only, and leaves no
// partial checkpoint.
void write_checkpoint(const std::filesystem::path& checkpoints, const CheckpointParts& parts);

// The steps that have checkpoints, in ascending order.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& checkpoints);
// The file of a checkpoint's moving average.
inline constexpr const char* kAverageFile = "ema.safetensors";
std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);

// Restores the weights, the moments, the optimiser's step count and, unless it is null, the moving
// average, which starts with the weights if the checkpoint has none. Returns the rest of the state.
// Throws Error, before anything is changed, when the checkpoint's tensors do not match the model.
TrainerState load_checkpoint(const std::filesystem::path& checkpoint, Model& model,
                             AdamOptimizer& optimizer, MovingAverage* average = nullptr);

// The checkpoints of a run that were written last, newest first, and those with the best validation
// scores, best first. Throws Error if the run has fewer than `count`.
std::vector<std::filesystem::path> last_checkpoints(const std::filesystem::path& run,
                                                    std::size_t count);
std::vector<std::filesystem::path> best_checkpoints(const std::filesystem::path& run,
                                                    std::size_t count);

// Removes all checkpoints except the last `keep_last` and those in `best`.
void remove_old_checkpoints(const std::filesystem::path& checkpoints, std::size_t keep_last,
                            std::span<const StepScore> best);

}  // namespace nunchi
