// From a training config to a model in training: tokenizers, prepared data, model, validation.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/data/prepare.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/training/trainer.h"
#include "nunchi/training/validator.h"

namespace nunchi {

struct TrainingRunOptions {
  std::filesystem::path cache;       // where prepared data are kept
  std::filesystem::path checkpoint;  // whose tokenizers to take; empty: those the config asks for
  int threads = 1;                   // that tokenise
  std::function<void(const std::string&)> note;
  std::function<void(const PrepareProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // true: give up
  Communicator* communicator = nullptr;     // outlives the run; null: one process
};

struct MeasureOptions {
  int warmup = 1;  // untimed steps before the others
  int steps = 3;
  double learning_rate = 0;
};

// What a few steps told, before a run that may take days.
struct StepTimes {
  double seconds_per_step = 0;
  double target_tokens_per_second = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;          // 0: nobody knows
  double first_loss = 0, last_loss = 0;  // of a target token
};

class TrainingRun {
 public:
  // Reads or learns the tokenizers (see make_tokenizers), prepares the data, and makes the model,
  // with the weights of `initialize_from` or drawn from the seed. Throws Error for whatever is
  // missing or does not fit, and Interrupted when it was stopped: what it writes are whole files
  // of prepared data. (While a tokenizer is learned, a request to stop has to wait.) `context`
  // outlives it.
  TrainingRun(ContextBase& context, const TrainConfig& config, const TrainingRunOptions& options);

  // See Trainer. `folder` is the leader's, null on other workers. The hook for validation is the
  // run's own. Throws Interrupted when the stop came before the folder was started.
  TrainingEnd train(RunFolder* folder, TrainerHooks hooks);
  // Takes a few steps, waiting for data included, and leaves no trace but changed weights. While it
  // times, kernels report to `profile`, if there is one.
  StepTimes measure(const MeasureOptions& options, Profile* profile = nullptr);

  const TrainConfig& config() const { return config_; }
  const Model& model() const { return *model_; }
  const Tokenizers& tokenizers() const { return tokenizers_; }
  // Of each part of the training data, and of the validation's.
  std::vector<PairReport> reports() const;
  std::optional<PairReport> validation_report() const;

 private:
  ContextBase& context_;
  SingleProcess single_process_;
  Communicator& communicator_;
  TrainConfig config_;
  std::optional<CorpusPart> validation_part_;
  Tokenizers tokenizers_;
  std::vector<PairStore> pairs_;
  std::optional<PairStore> validation_pairs_;
  std::unique_ptr<BatchOrder> order_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<Validator> validator_;
};

// The tokenizers that a config asks for: existing files, or those of the model that the run starts
// from, or new ones learned from the training data. Of the options, `note` is told what takes time,
// and `stop` is looked at.
Tokenizers make_tokenizers(const TrainConfig& config, const TrainingRunOptions& options);

// Throws UsageError when the run starts from something that it would remove from its own folder.
void check_inputs_stay(const TrainConfig& config, const RunFolder& folder);

}  // namespace nunchi
