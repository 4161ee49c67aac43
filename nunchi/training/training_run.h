// Sets up training from a config: tokenizers, model, prepared data, validation.
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
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/training/trainer.h"
#include "nunchi/training/validator.h"

namespace nunchi {

struct TrainingRunOptions {
  std::filesystem::path cache;       // folder of the prepared data
  std::filesystem::path checkpoint;  // of a resumed run, whose tokenizers are kept; else empty
  int threads = 1;                   // threads that tokenise
  std::function<void(const std::string&)> note;          // receives messages for the user
  std::function<void(const LearnProgress&)> learning;    // progress of learning a tokenizer
  std::function<void(const PrepareProgress&)> progress;  // progress of preparing the data
  const std::atomic<bool>* stop = nullptr;               // true: throw Interrupted
  Communicator* communicator = nullptr;                  // must outlive the run; null: one process
};

struct MeasureOptions {
  int warmup = 1;  // untimed steps before the timed ones
  int steps = 3;   // timed steps
  double learning_rate = 0;
  bool largest_batch = false;  // whether the largest micro-batch is tried after the steps
};

// The speed of a few steps and estimates for the whole run.
struct StepTimes {
  double seconds_per_step = 0;
  double target_tokens_per_second = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;          // 0: unknown
  double first_loss = 0, last_loss = 0;  // per target token
  // The largest micro-batch of the first epoch, if it was tried.
  struct Largest {
    std::int64_t sentences = 0;
    std::int64_t rows = 0;  // see batch_rows
    bool fits = true;       // into memory; otherwise it is computed in parts
  };
  Largest largest = {};
};

// The memory of weights, gradients and moments, and of the moving average if there is one.
double training_state_mib(const Model& model, const ContextBase& context,
                          const TrainingOptions& training);

class TrainingRun {
 public:
  // Learns or reads the tokenizers, makes the model, whose weights come from `initialize_from` or
  // are drawn from the seed, and prepares the data. Throws Error for anything that is missing or
  // does not fit together, and Interrupted when `stop` becomes true; it writes only complete files
  // of prepared data. With `learning` or `stop`, a tokenizer is learned in a child process (see
  // learn_tokenizer). `context` must outlive the run.
  TrainingRun(ContextBase& context, const TrainConfig& config, const TrainingRunOptions& options);

  // See Trainer. `folder` is null on workers other than the leader. Replaces hooks.validate
  // and hooks.samples by those of the run's validator. Throws Interrupted when the request to stop
  // came before the folder was started.
  TrainingEnd train(RunFolder* folder, TrainerHooks hooks);
  // Takes a few steps and measures their time, including the wait for data. Changes only the
  // weights. Kernels report the timed steps to `profile`, if there is one.
  StepTimes measure(const MeasureOptions& options, Profile* profile = nullptr);

  // The config with values that were found: labels and `batch_tokens: auto`.
  const TrainConfig& config() const { return config_; }
  const Model& model() const { return *model_; }
  const Tokenizers& tokenizers() const { return *tokenizers_; }
  // The reports of each part of the training data, and of the validation data.
  std::vector<PairReport> reports() const;
  std::optional<PairReport> validation_report() const;

 private:
  // The stages of the constructor, in order. Each reads its files once. Inputs that do not fit
  // together are reported before the data are prepared, which takes long.
  void read_validation(const TrainingRunOptions& options);
  void make_tokenizers(const TrainingRunOptions& options);
  void make_model(const TrainingRunOptions& options);
  void prepare_data(const TrainingRunOptions& options);
  void order_batches(const TrainingRunOptions& options);
  void make_validator();

  std::unique_ptr<BatchOrder> make_order(std::int64_t batch_tokens) const;
  // Replaces `batch_tokens: auto` by a number: that of the resumed run, or the largest that fits.
  void set_batch_tokens(const TrainingRunOptions& options);
  void set_weights(const TrainingRunOptions& options);
  LearnerOptions learner_options() const;
  // Translates typical_sources_ with the model of `folder` and stores their TypicalScores in it.
  // False if stopped.
  bool store_typical_scores(const std::filesystem::path& folder, const std::atomic<bool>* stop);

  ContextBase& context_;
  SingleProcess single_process_;
  Communicator& communicator_;
  TrainConfig config_;
  std::vector<RawPair> validation_lines_;  // empty unless later stages need them
  // Validation sources, for the typical scores of a model that translates text; else empty.
  std::vector<SourceLine> typical_sources_;
  std::optional<Tokenizers> tokenizers_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Objective> objective_;
  std::vector<PairStore> pairs_;
  std::optional<PairStore> validation_pairs_;
  std::unique_ptr<BatchOrder> order_;
  std::unique_ptr<Validator> validator_;
};

// Throws UsageError when RunFolder::start() would remove a file that the config names as an input.
void check_inputs_not_removed(const TrainConfig& config, const RunFolder& folder);

}  // namespace nunchi
