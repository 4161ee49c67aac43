// The training loop: batch → forward → loss → backward → clip → step → log → validate →
// checkpoint, until the run ends or is asked to stop.
//
// Runs are deterministic for the same build, instruction set, number of threads and number of
// workers. A run that was stopped or killed and then resumed gives the same bits as an
// uninterrupted run.
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
#include "nunchi/training/moving_average.h"
#include "nunchi/training/progress.h"
#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/metrics_log.h"
#include "nunchi/training/run/run_folder.h"
#include "nunchi/training/schedule.h"
#include "nunchi/training/validation_scores.h"

namespace nunchi {

// Callbacks, all called on the training thread; each may be empty. Workers other than the leader
// use only `stop` and `before_step`.
struct TrainerHooks {
  std::function<void(const TrainingProgress&)> progress;  // after each step
  std::function<void(const std::string&)> note;           // a message for the user
  // Returns no scores if a request to stop interrupted it; it is called again when the run is
  // resumed.
  std::function<std::optional<ValidationScores>()> validate;
  // Sample translations of the last validation, for TensorBoard.
  std::function<std::vector<SampleTranslation>()> samples;
  std::function<void(std::int64_t step)> before_step;  // for tests
  const std::atomic<bool>* stop = nullptr;             // true: end after the current step
};

// The objects that a trainer uses; all must outlive it.
struct TrainerParts {
  Model& model;  // allocated with gradients, and initialised
  const Objective& objective;
  const BatchOrder& order;
  Communicator& communicator;
  RunFolder* folder;  // null on workers other than the leader; run() starts it
  // Writes the other files of a checkpoint (tokenizers, configs) into the given folder.
  std::function<void(const std::filesystem::path& folder)> write_companions;
};

enum class TrainingEnd : std::uint8_t {
  finished,       // a limit was reached
  stopped_early,  // validation has not improved validation.patience times in a row
  interrupted,    // by a request to stop, after writing a checkpoint
};

class Trainer {
 public:
  // Resumes from the folder's last checkpoint, if there is one. Throws Error when the checkpoint
  // does not fit the model.
  Trainer(TrainerParts parts, const TrainConfig& config, TrainerHooks hooks);

  // Starts the run's folder and trains. Unless the run is interrupted, the folder is a model folder
  // afterwards (see final_model.h). A step whose loss or gradients are not finite is skipped and
  // its batches saved; throws Error after three such steps in a row.
  TrainingEnd run();

  const TrainerState& state() const { return state_; }

 private:
  enum class Next : std::uint8_t { step, finish, interrupt };
  // Collective: all workers get the same result.
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
  // Calls `read`, which must not change the model or the state. If it throws Error, for example
  // because the data on disk were damaged, writes a checkpoint before it passes the error on.
  void save_on_failure(const std::function<void()>& read);
  RandomKey key() const;
  double rate() const;
  void skip(std::span<const HostBatch> batches, const StepReport& report);
  void report_progress(const StepReport& report);
  TrainingProgress progress(const StepReport& report) const;
  void write_log(const TrainingProgress& progress);
  void validate();
  // The scores of the weights, or of their moving average if there is one.
  std::optional<ValidationScores> measure();
  void save();
  // Collective. False if a validation was interrupted; a resumed run repeats it.
  bool make_model_folder();
  void note(const std::string& message) const;

  TrainerParts parts_;
  TrainConfig config_;
  TrainerHooks hooks_;
  Schedule schedule_;
  Learner learner_;
  std::optional<MovingAverage> average_;  // only on the leader
  TrainerState state_;
  RunClock clock_;
  std::optional<MetricsLog> log_;
  std::int64_t saved_step_ = 0;     // step of the newest checkpoint; 0: there is none
  bool saved_ = false;              // whether that checkpoint has the current state
  std::int64_t epoch_batches_ = 0;  // micro-batches of the current epoch
};

}  // namespace nunchi
