// The whole of training: batch → forward → loss → backward → clip → step → log → validate →
// checkpoint, until the run ends or is asked to stop.
//
// With the same build, instruction set and number of threads a run gives the same bits, and a run
// that was stopped or killed and resumed gives those of the run that never was.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/data/batch_queue.h"
#include "nunchi/training/config/train_config.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/run/checkpoint.h"
#include "nunchi/training/run/metrics_log.h"
#include "nunchi/training/run/run_folder.h"
#include "nunchi/training/schedule.h"

namespace nunchi {

struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;  // 0: nobody knows
  std::int64_t epoch = 0;        // from 0
  double loss = 0;               // of a target token, since the log's last line
  double learning_rate = 0;
  double gradient_norm = 0;
  double target_tokens_per_second = 0;  // waiting for data included
  double seconds_left = 0;              // below zero: nobody knows
};

struct ValidationScores {
  double loss = 0;  // of a target token, without label smoothing
  std::optional<double> bleu, chrf;
  std::optional<double> accuracy;  // 0 to 1: of what was to be said
};

// All are called on the thread that trains; each may be empty.
struct TrainerHooks {
  std::function<void(const TrainingProgress&)> progress;  // after each step
  std::function<void(const std::string&)> note;  // a sentence for the person at the terminal
  // Nothing when it was interrupted by a request to stop: it is asked again when the run goes on.
  std::function<std::optional<ValidationScores>()> validate;
  std::function<void(std::int64_t step)> before_step;  // for tests
  const std::atomic<bool>* stop = nullptr;             // true: end after the step under way
};

// What a run is made of; all of it outlives the trainer.
struct TrainerParts {
  Model& model;  // allocated with gradients, and initialised
  const Objective& objective;
  const BatchOrder& order;
  RunFolder& folder;  // started when the trainer runs
  // Writes what stands beside the weights in checkpoints and model folders: tokenizers, configs.
  std::function<void(const std::filesystem::path& folder)> companions;
};

enum class TrainingEnd : std::uint8_t {
  finished,     // a limit was reached
  early,        // validation has not improved for as long as the config's patience
  interrupted,  // somebody asked to stop; a checkpoint is written
};

class Trainer {
 public:
  // Takes up the folder's last checkpoint, if there is one. Throws Error when that does not fit.
  Trainer(TrainerParts parts, const TrainConfig& config, TrainerHooks hooks);

  // Starts the run's folder. Unless it was interrupted, the run's folder is a model folder then:
  // the mean of its best checkpoints, or of its last ones where nothing was validated. Throws Error
  // when three steps in a row had a loss or gradients that are not finite; each such step is left
  // out, and the batch that made it saved.
  TrainingEnd run();

  const TrainerState& state() const { return state_; }

 private:
  bool ended() const;
  bool asked_to_stop() const;
  bool validation_due() const;
  bool checkpoint_due() const;

  std::vector<HostBatch> next_batches(BatchQueue& queue);
  void skip(std::span<const HostBatch> batches, const LearnedStep& learned);
  void report(const LearnedStep& learned);
  void validate();
  void save();
  void make_model_folder() const;

  RandomKey key() const;
  double rate() const;
  double elapsed() const;
  void resume();
  void note(const std::string& sentence) const;

  TrainerParts parts_;
  TrainConfig config_;
  TrainerHooks hooks_;
  Schedule schedule_;
  Learner learner_;
  TrainerState state_;
  std::optional<MetricsLog> log_;
  std::int64_t saved_step_ = 0;     // of the newest checkpoint; 0: there is none
  bool saved_ = false;              // it holds all that there is to save
  std::int64_t epoch_batches_ = 0;  // of the epoch under way

  using Clock = std::chrono::steady_clock;
  Clock::time_point began_;    // of this process's part of the run
  double elapsed_before_ = 0;  // of the parts before it
  std::int64_t steps_before_ = 0;
  Clock::time_point window_began_;  // of the log's next line
  std::int64_t window_tokens_ = 0;  // taken since then
};

}  // namespace nunchi
