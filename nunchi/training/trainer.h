// The whole of training: batch → forward → loss → backward → clip → step → log → validate →
// checkpoint, until the run ends or is asked to stop.
//
// With the same build, instruction set, number of threads and of workers a run gives the same bits,
// and a run that was stopped or killed and resumed gives those of the run that never was.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/data/batch_queue.h"
#include "nunchi/training/communicator.h"
#include "nunchi/training/config/train_config.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/progress.h"
#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/metrics_log.h"
#include "nunchi/training/run/run_folder.h"
#include "nunchi/training/schedule.h"
#include "nunchi/training/validation_scores.h"

namespace nunchi {

// All are called on the thread that trains; each may be empty. Only `stop` and `before_step` matter
// on workers other than the leader.
struct TrainerHooks {
  std::function<void(const TrainingProgress&)> progress;  // after each step
  std::function<void(const std::string&)> note;           // a message for the user
  // No scores when a request to stop interrupted it: it is called again when the run is resumed.
  std::function<std::optional<ValidationScores>()> validate;
  std::function<void(std::int64_t step)> before_step;  // for tests
  const std::atomic<bool>* stop = nullptr;             // true: end after the current step
};

// What a run is made of; all of it outlives the trainer.
struct TrainerParts {
  Model& model;  // allocated with gradients, and initialised
  const Objective& objective;
  const BatchOrder& order;
  Communicator& communicator;
  RunFolder* folder;  // the leader's, started when the trainer runs; null on other workers
  // Writes the files beside the weights in checkpoints and model folders: tokenizers, configs.
  std::function<void(const std::filesystem::path& folder)> companions;
};

enum class TrainingEnd : std::uint8_t {
  finished,     // a limit was reached
  early,        // validation has not improved for as long as the config's patience
  interrupted,  // by a request to stop; a checkpoint is written
};

class Trainer {
 public:
  // Resumes from the folder's last checkpoint, if there is one. Throws Error when it does not fit.
  Trainer(TrainerParts parts, const TrainConfig& config, TrainerHooks hooks);

  // Starts the run's folder. At the end, unless the run was interrupted, the folder is a model
  // folder: the mean of the best checkpoints, or of the last ones if nothing was validated. Throws
  // Error after three steps in a row whose loss or gradients were not finite; each such step is
  // skipped and its batch saved.
  TrainingEnd run();

  const TrainerState& state() const { return state_; }

 private:
  enum class Next : std::uint8_t { step, end, stop };
  // The same on all workers.
  Next next() const;
  bool limit_reached() const;
  bool out_of_patience() const;
  bool validation_due() const;
  bool checkpoint_due() const;
  bool leads() const { return parts_.communicator.is_leader(); }

  void resume();
  void load_last_checkpoint();
  void share_state();

  std::vector<HostBatch> next_batches(BatchQueue& queue);
  RandomKey key() const;
  double rate() const;
  void skip(std::span<const HostBatch> batches, const LearnedStep& learned);
  void report(const LearnedStep& learned);
  TrainingProgress progress(const LearnedStep& learned) const;
  void write_log(const TrainingProgress& progress);
  void validate();
  void save();
  void make_model_folder() const;
  void note(const std::string& message) const;

  TrainerParts parts_;
  TrainConfig config_;
  TrainerHooks hooks_;
  Schedule schedule_;
  Learner learner_;
  TrainerState state_;
  RunClock clock_;
  std::optional<MetricsLog> log_;
  std::int64_t saved_step_ = 0;     // of the newest checkpoint; 0: there is none
  bool saved_ = false;              // nothing has changed since that checkpoint
  std::int64_t epoch_batches_ = 0;  // micro-batches of the current epoch
};

}  // namespace nunchi
