// The options of `nunchi train`, as its YAML file has them: a struct for each map, a field for each
// key, with the defaults.
#pragma once

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
  bool shared = true;            // one for both sides, or one each
  std::filesystem::path source;  // an existing file; if shared, for both sides
  std::filesystem::path target;

  // Whether this kind of tokenizer has pieces and symbols.
  bool has_pieces() const {
    return options.kind == TokenizerKind::bpe || options.kind == TokenizerKind::unigram;
  }
};

struct DataConfig {
  std::filesystem::path root = ".";  // of relative names of the data
  std::filesystem::path cache;       // empty: OUTPUT/cache
  std::vector<CorpusPart> train;
  std::optional<CorpusPart> validation;
  PairLimits limits;
  TextCut cut = TextCut::lines;  // of texts; by default the objective's
  std::int64_t window = 256;     // tokens of a window

  // Tokens of the windows that the data are cut into; 0: they are pairs or lines.
  std::int64_t text_window() const { return cut == TextCut::windows ? window : 0; }

  // The parts with their names relative to `root` resolved.
  std::vector<CorpusPart> train_parts() const;
  std::optional<CorpusPart> validation_part() const;
};

struct OptimizerConfig {
  enum class Kind : std::uint8_t { adam, adamw };
  Kind kind = Kind::adam;  // adamw: with weight decay
  AdamOptions adam{.max_norm = 1};
};

// Of the objective span_corruption.
struct SpanCorruptionOptions {
  double noise = 0.15;   // the share of a text's tokens that is taken out
  double mean_span = 3;  // the mean number of adjacent tokens that are taken out
};

struct TrainingOptions {
  ObjectiveKind objective = ObjectiveKind::translation;  // by default the family's
  std::int64_t batch_tokens = 4096;  // target tokens of a micro-batch, </s> included
  BatchBy batch_by = BatchBy::length;
  std::int64_t accumulate = 1;  // micro-batches a step, of all workers together
  GradientSum gradient_sum = GradientSum::sequential;
  double label_smoothing = 0.1;  // by default the objective's
  SpanCorruptionOptions span_corruption;
  double mask_share = 0.15;  // masked: the share of a text's tokens that is taken out
  bool whole_words = false;  // masked: all pieces of a word or none
  OptimizerConfig optimizer;
  Schedule schedule;  // the trainer sets total_steps and width
  // The run ends at the first of these; 0: no such limit.
  std::int64_t max_steps = 0;
  std::int64_t max_epochs = 0;
  double max_minutes = 0;
  std::int64_t log_every = 50;  // steps
};

// BatchOptions::source_tokens: for texts with labels, batch_tokens limits the texts.
std::int64_t source_tokens(const TrainingOptions& training);

struct CheckpointConfig {
  std::int64_t every = 500;    // steps
  std::int64_t keep_last = 5;  // checkpoints
  std::int64_t keep_best = 5;  // by the validation's metric
  std::int64_t average = 5;    // of the best; their mean is the run's model
};

enum class ValidationMetric : std::uint8_t { bleu, chrf, loss, accuracy };

struct ValidationConfig {
  std::int64_t every = 500;                          // steps; 0: only at the end
  ValidationMetric metric = ValidationMetric::bleu;  // by default loss if nothing is translated
  bool lowercase = false;
  std::int64_t beam_size = 1;
  std::int64_t patience = 0;  // validations without improvement that end the run; 0: no limit
};

// The defaults of `nunchi translate` for the model.
struct GenerationConfig {
  std::int64_t beam_size = 5;  // by default 1 if nothing is translated
  double normalize = 1;        // scores are divided by length to this power
  std::int64_t max_length = 256;
};

struct TrainConfig {
  std::filesystem::path output;  // the run's folder
  std::uint64_t seed = 1;
  std::filesystem::path initialize_from;  // a model folder whose weights the run starts from
  ModelConfig model;                      // has no family until it is set
  TokenizerConfig tokenizer;
  DataConfig data;
  TrainingOptions training;
  CheckpointConfig checkpoints;
  ValidationConfig validation;
  GenerationConfig generation;

  // Whether tokenizers are learned for the run, not read from files or another model.
  bool learns_tokenizer() const { return tokenizer.source.empty() && initialize_from.empty(); }
  std::filesystem::path cache() const { return data.cache.empty() ? output / "cache" : data.cache; }
};

// The config of the file, changed by assignments such as "training.max_steps=100". Throws Error
// with the file and line, or UsageError with the assignment, for values that are wrong or do not
// fit together.
TrainConfig read_train_config(const std::filesystem::path& file,
                              std::span<const std::string> assignments = {});
TrainConfig read_train_config(const Options& options);

// Every key with its value, except keys of the model without effect. Reads back as an equivalent
// config.
std::string to_yaml(const TrainConfig& config);

}  // namespace nunchi
