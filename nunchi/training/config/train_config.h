// The options of `nunchi train`: a struct for each map of the YAML file, a field for each key, with
// its default.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nunchi/base/options.h"
#include "nunchi/data/batch_order.h"
#include "nunchi/data/corpus.h"
#include "nunchi/data/prepare.h"
#include "nunchi/models/family.h"
#include "nunchi/text/learn_tokenizer.h"
#include "nunchi/training/gradient_sum.h"
#include "nunchi/training/optimizer.h"
#include "nunchi/training/schedule.h"

namespace nunchi {

// Tokenizers are learned from the training data or read from files.
struct TokenizerConfig {
  TokenizerOptions options;
  bool shared = true;            // one tokenizer for both sides, or one for each
  std::filesystem::path source;  // an existing file, used for both sides if shared; may be empty
  std::filesystem::path target;  // an existing file; empty if shared or if source is empty

  // Whether this kind of tokenizer has subword pieces and can have extra symbols.
  bool is_subword() const {
    return options.kind == TokenizerKind::bpe || options.kind == TokenizerKind::unigram;
  }
};

struct DataConfig {
  std::filesystem::path root = ".";  // relative paths of the data start here
  std::filesystem::path cache;       // empty: OUTPUT/cache
  std::vector<CorpusPart> train;
  std::optional<CorpusPart> validation;
  PairLimits limits;
  TextCut cut = TextCut::lines;  // how a text becomes examples; default: the objective's
  std::int64_t window = 256;     // tokens of a window

  // Tokens of a window if the data are cut into windows, otherwise 0.
  std::int64_t text_window() const { return cut == TextCut::windows ? window : 0; }

  // The parts with their paths resolved against `root`.
  std::vector<CorpusPart> train_parts() const;
  std::optional<CorpusPart> validation_part() const;
};

struct OptimizerConfig {
  enum class Kind : std::uint8_t { adam, adamw };
  Kind kind = Kind::adam;  // only adamw allows weight decay
  AdamOptions adam{.max_norm = 1};
};

// Options of the objective span_corruption.
struct SpanCorruptionOptions {
  double noise = 0.15;   // fraction of a text's tokens that is removed
  double mean_span = 3;  // mean length of a removed span, in tokens
};

inline constexpr std::int64_t kAutomatic = 0;  // written "auto"

struct TrainingOptions {
  ObjectiveKind objective = ObjectiveKind::translation;  // default: the family's
  // Target tokens of a micro-batch, </s> included; kAutomatic: the largest number that fits into
  // memory, which TrainingRun finds.
  std::int64_t batch_tokens = 4096;
  BatchBy batch_by = BatchBy::length;
  std::int64_t accumulate = 1;  // micro-batches per step, over all workers
  GradientSum gradient_sum = GradientSum::sequential;
  double label_smoothing = 0.1;  // default: the objective's
  SpanCorruptionOptions span_corruption;
  double mask_share = 0.15;  // objective masked: fraction of a text's tokens that is predicted
  bool whole_words = false;  // objective masked: mask all pieces of a word or none
  OptimizerConfig optimizer;
  double ema = 0;     // decay of the exponential moving average of the weights; 0: no average
  Schedule schedule;  // the trainer sets total_steps and width
  // The run ends at the first limit that it reaches; 0: no such limit.
  std::int64_t max_steps = 0;
  std::int64_t max_epochs = 0;
  double max_minutes = 0;
  std::int64_t log_every = 50;  // steps
};

// The value for BatchOptions::source_tokens: batch_tokens for classification, whose targets are
// single labels, and 0, the default, for other objectives.
std::int64_t source_tokens(const TrainingOptions& training);

struct CheckpointConfig {
  std::int64_t every = 500;    // steps between checkpoints
  std::int64_t keep_last = 5;  // number of newest checkpoints that are kept
  std::int64_t keep_best = 5;  // number of best checkpoints that are kept, by validation.metric
  // Number of best checkpoints, or last ones without validation, in the mean that becomes the run's
  // model unless the best checkpoint alone scores better.
  std::int64_t average = 5;
};

enum class ValidationMetric : std::uint8_t { bleu, chrf, loss, accuracy };
// Their names in configs and in run.json.
inline constexpr std::array kValidationMetrics = {
    Choice{"bleu", ValidationMetric::bleu}, Choice{"chrf", ValidationMetric::chrf},
    Choice{"loss", ValidationMetric::loss}, Choice{"accuracy", ValidationMetric::accuracy}};

struct ValidationConfig {
  std::int64_t every = 500;                          // steps; 0: only at the end
  ValidationMetric metric = ValidationMetric::bleu;  // default: loss unless the model translates
  bool lowercase = false;
  std::int64_t beam_size = 1;
  std::int64_t patience = 0;  // validations without improvement that end the run; 0: never
};

// The model's defaults for `nunchi translate`, saved in its generation_config.json.
struct GenerationConfig {
  std::int64_t beam_size = 5;  // default: 1 unless the model translates
  double normalize = 1;        // length penalty: scores are divided by length^normalize
  std::int64_t max_length = 256;
};

struct TrainConfig {
  std::filesystem::path output;  // the run's folder
  std::uint64_t seed = 1;
  std::filesystem::path initialize_from;  // a model folder whose weights the run starts from
  ModelConfig model;                      // without a family until it is assigned
  TokenizerConfig tokenizer;
  DataConfig data;
  TrainingOptions training;
  CheckpointConfig checkpoints;
  ValidationConfig validation;
  GenerationConfig generation;

  // Whether the run learns its tokenizers instead of reading them from files or another model.
  bool learns_tokenizer() const { return tokenizer.source.empty() && initialize_from.empty(); }
  std::filesystem::path cache() const { return data.cache.empty() ? output / "cache" : data.cache; }
};

// The config of the file, changed by assignments such as "training.max_steps=100". Throws Error
// with the file and line, or UsageError with the assignment, for values that are wrong or do not
// fit together.
TrainConfig read_train_config(const std::filesystem::path& file,
                              std::span<const std::string> assignments = {});
TrainConfig read_train_config(const Options& options);

// Every key with its value, except keys of the model that have no effect. Reading the text gives an
// equivalent config.
std::string to_yaml(const TrainConfig& config);

}  // namespace nunchi
