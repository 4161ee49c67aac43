// A run that takes milliseconds, for any objective: random sentences and a small model.
#pragma once

#include "nunchi/device/make_context.h"
#include "nunchi/training/objectives/label_tokenizer.h"
#include "nunchi/training/objectives/objectives.h"
#include "nunchi/training/trainer.h"
#include "tests/files.h"
#include "tests/models/small_models.h"
#include "tests/training/piece_tokenizer.h"

namespace nunchi::testing {

inline constexpr std::int64_t kTinyVocabulary = 37;

// A tokenizer that fits every objective: it has a mask, sentinels and labels.
inline std::unique_ptr<Tokenizer> tiny_tokenizer() {
  std::vector<std::string> pieces = {"[MASK]", "<extra_id_0>", "<extra_id_1>", "even", "odd"};
  while (pieces.size() + 3 < kTinyVocabulary)
    pieces.push_back("▁w" + std::to_string(pieces.size()));
  return std::make_unique<PieceTokenizer>(pieces);
}
inline constexpr std::int32_t kTinyWord = 8;  // token of the first word

// Pairs whose target is the reversed source.
inline PairStore tiny_pairs(const std::filesystem::path& file, int count) {
  PairWriter writer(file, {.low = 1, .high = static_cast<std::uint64_t>(count)});
  for (int i = 0; i < count; ++i) {
    const std::int32_t length = 2 + i % 7;
    Tokens tokens;
    for (const double u : random_values<double>(length, 500 + static_cast<std::uint64_t>(i))) {
      tokens.push_back(3 + static_cast<std::int32_t>((u + 1) / 2 * (kTinyVocabulary - 3)));
    }
    const Tokens reversed(tokens.rbegin(), tokens.rend());
    tokens.push_back(2);
    tokens.insert(tokens.end(), reversed.begin(), reversed.end());
    writer.add(tokens, static_cast<std::uint32_t>(length + 1));
  }
  writer.commit({.lines = count, .kept = count});
  return PairStore::open(file);
}

// Lines in which each token is the previous one plus one. Without labels the lines are targets;
// with labels they are sources, and the label says whether the number of tokens is even or odd.
inline PairStore tiny_lines(const std::filesystem::path& file, int count, Examples examples) {
  PairWriter writer(file, {.low = 2, .high = static_cast<std::uint64_t>(count)});
  for (std::int32_t i = 0; i < count; ++i) {
    Tokens tokens;
    for (std::int32_t t = 0; t < 4 + i % 5; ++t) {
      tokens.push_back(kTinyWord +
                       (i * 3 + t) % (static_cast<std::int32_t>(kTinyVocabulary) - kTinyWord));
    }
    const bool labelled = examples == Examples::labelled;
    if (labelled) {
      const auto odd = static_cast<std::int32_t>(tokens.size() % 2);
      tokens.push_back(2);
      tokens.push_back(odd);
    }
    writer.add(tokens, labelled ? static_cast<std::uint32_t>(tokens.size() - 1) : 0);
  }
  writer.commit({.lines = count, .kept = count});
  return PairStore::open(file);
}

inline PairStore tiny_store(const std::filesystem::path& file, ObjectiveKind objective) {
  const Examples examples = info_of(objective).examples.kind;
  return examples == Examples::pairs ? tiny_pairs(file, 60) : tiny_lines(file, 60, examples);
}

inline TrainConfig tiny_config() {
  TrainConfig config;
  TransformerConfig model = small_config(kTinyVocabulary);
  model.dropout = 0.1f;
  config.model = model;
  config.seed = 5;
  config.training.batch_tokens = 40;
  config.training.accumulate = 2;
  config.training.schedule.peak = 3e-3;
  config.training.schedule.warmup = 4;
  config.training.max_steps = 12;
  config.training.log_every = 3;
  config.checkpoints = {.every = 4, .keep_last = 2, .keep_best = 2, .average = 2};
  config.validation.every = 0;
  return config;
}

// Owns everything that the trainer of one worker needs. Several workers need different folders;
// only the leader's becomes a run's folder.
class TinyRun {
 public:
  TinyRun(const std::filesystem::path& path, RunFolder::StartMode mode, const TrainConfig& config,
          int threads = 1)
      : TinyRun(path, mode, config, ContextOptions{.threads = threads}) {}
  TinyRun(const std::filesystem::path& path, RunFolder::StartMode mode, const TrainConfig& config,
          const ContextOptions& options, Communicator* communicator = nullptr)
      : config_(config),
        communicator_(communicator != nullptr ? *communicator : single_process_),
        context_(make_context(options)),
        folder_(communicator_.is_leader() ? std::make_unique<RunFolder>(path, mode) : nullptr),
        pairs_(tiny_store(path / "pairs", config.training.objective)),
        order_({{&pairs_, 1}}, {.batch_tokens = config.training.batch_tokens, .seed = config.seed}),
        model_(config.model->make({kTinyVocabulary, kTinyVocabulary})),
        objective_(info_of(config.training.objective)
                       .make({*model_, *context_, tokenizers_, config_.training})) {
    model_->parameters().allocate(*context_, {.gradients = true});
    model_->parameters().initialize(11);
  }

  TrainingEnd train(TrainerHooks hooks = {}) {
    hooks.note = [this](const std::string& sentence) { notes_ += sentence + "\n"; };
    Trainer trainer({*model_, *objective_, order_, communicator_, folder_.get(), {}}, config_,
                    std::move(hooks));
    const TrainingEnd end = trainer.run();
    state_ = trainer.state();
    return end;
  }
  std::vector<float> weights() const { return to_host<float>(model_->parameters().weights()); }
  Model& model() { return *model_; }
  const TrainerState& state() const { return state_; }
  const std::string& notes() const { return notes_; }
  const BatchOrder& order() const { return order_; }
  const Objective& objective() const { return *objective_; }
  ContextBase& context() { return *context_; }

 private:
  TrainConfig config_;
  SingleProcess single_process_;
  Communicator& communicator_;
  std::unique_ptr<ContextBase> context_;
  std::unique_ptr<RunFolder> folder_;
  PairStore pairs_;
  BatchOrder order_;
  Tokenizers tokenizers_{tiny_tokenizer()};
  std::unique_ptr<Model> model_;
  std::unique_ptr<Objective> objective_;
  TrainerState state_;
  std::string notes_;
};

}  // namespace nunchi::testing
