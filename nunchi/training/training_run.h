// From a training config to a model in training: tokenizers, model, prepared data, validation.
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
  std::filesystem::path checkpoint;  // of a resumed run, which keeps its tokenizers; may be empty
  int threads = 1;                   // that tokenise
  std::function<void(const std::string&)> note;          // messages for the user
  std::function<void(const PrepareProgress&)> progress;  // of preparing the data
  const std::atomic<bool>* stop = nullptr;               // true: give up
  Communicator* communicator = nullptr;                  // outlives the run; null: one process
};

struct MeasureOptions {
  int warmup = 1;  // untimed steps before the others
  int steps = 3;
  double learning_rate = 0;
};

// The times of a few steps, before a run that may take days.
struct StepTimes {
  double seconds_per_step = 0;
  double target_tokens_per_second = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;          // 0: unknown
  double first_loss = 0, last_loss = 0;  // per target token
};

class TrainingRun {
 public:
  // Makes or reads the tokenizers, makes the model, with the weights of `initialize_from` or drawn
  // from the seed, and prepares the data. Throws Error for anything that is missing or does not
  // fit, and Interrupted when it was stopped: what it writes are whole files of prepared data.
  // (Learning a tokenizer cannot be interrupted.) `context` outlives it.
  TrainingRun(ContextBase& context, const TrainConfig& config, const TrainingRunOptions& options);

  // See Trainer. `folder` is the leader's, null on other workers. The hook for validation is the
  // run's own. Throws Interrupted when the stop came before the folder was started.
  TrainingEnd train(RunFolder* folder, TrainerHooks hooks);
  // Takes a few steps, including the wait for data, and leaves nothing but changed weights. Kernels
  // report the timed steps to `profile`, if there is one.
  StepTimes measure(const MeasureOptions& options, Profile* profile = nullptr);

  const TrainConfig& config() const { return config_; }
  const Model& model() const { return *model_; }
  const Tokenizers& tokenizers() const { return *tokenizers_; }
  // Of each part of the training data, and of the validation data.
  std::vector<PairReport> reports() const;
  std::optional<PairReport> validation_report() const;

 private:
  // The stages of the constructor, in their order. Each reads its files once; what does not fit
  // together is reported before the long work of preparing the data.
  void read_validation();
  void make_tokenizers(const TrainingRunOptions& options);
  void make_model(const TrainingRunOptions& options);
  void prepare_data(const TrainingRunOptions& options);
  void order_batches();
  void make_validator();

  void set_weights(const TrainingRunOptions& options);
  LearnerOptions learner_options() const;

  ContextBase& context_;
  SingleProcess single_process_;
  Communicator& communicator_;
  TrainConfig config_;
  std::vector<RawPair> validation_lines_;  // only those that later stages need
  std::optional<Tokenizers> tokenizers_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Objective> objective_;
  std::vector<PairStore> pairs_;
  std::optional<PairStore> validation_pairs_;
  std::unique_ptr<BatchOrder> order_;
  std::unique_ptr<Validator> validator_;
};

// Throws UsageError when the run starts from a file that it would remove from its own folder.
void check_inputs_stay(const TrainConfig& config, const RunFolder& folder);

}  // namespace nunchi
