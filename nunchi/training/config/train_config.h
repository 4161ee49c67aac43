// Everything that `nunchi train` can be told, as its YAML file has it: a struct for each map, a
// field for each key, with the defaults.
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

// Tokenizers are learned from the training data, or read from files.
struct TokenizerConfig {
  TokenizerOptions options;
  bool shared = true;            // one for both sides, or one each
  std::filesystem::path source;  // an existing .spm file instead of a new one; of both if shared
  std::filesystem::path target;

  // Whether it is of a kind that has pieces and symbols.
  bool has_pieces() const {
    return options.kind == TokenizerKind::bpe || options.kind == TokenizerKind::unigram;
  }
};

struct DataConfig {
  std::filesystem::path root = ".";  // where relative names of the data start
  std::filesystem::path cache;       // empty: OUTPUT/cache
  std::vector<CorpusPart> train;
  std::optional<CorpusPart> validation;
  PairLimits limits;
  TextCut cut = TextCut::lines;  // of texts; the objective's own unless it is given
  std::int64_t window = 256;     // tokens of a window

  // Of a window that the data are cut into; 0: they are pairs or lines.
  std::int64_t text_window() const { return cut == TextCut::windows ? window : 0; }

  // The parts with `root` before their relative names.
  std::vector<CorpusPart> train_parts() const;
  std::optional<CorpusPart> validation_part() const;
};

struct OptimizerConfig {
  enum class Kind : std::uint8_t { adam, adamw };
  Kind kind = Kind::adam;  // adamw: with weight decay
  AdamOptions adam{.max_norm = 1};
};

// Of the objective of that name.
struct SpanCorruptionOptions {
  double noise = 0.15;   // of a text's tokens is taken out
  double mean_span = 3;  // tokens that stand next to one another, on average
};

struct TrainingOptions {
  ObjectiveKind objective = ObjectiveKind::translation;  // the family's own unless it is given
  std::int64_t batch_tokens = 4096;  // target tokens of a micro-batch, </s> included
  BatchBy batch_by = BatchBy::length;
  std::int64_t accumulate = 1;  // micro-batches a step, of all workers together
  GradientSum gradient_sum = GradientSum::sequential;
  double label_smoothing = 0.1;  // or what the objective is used to
  SpanCorruptionOptions span_corruption;
  double mask_share = 0.15;  // masked: of a text's tokens that are taken out
  bool whole_words = false;  // masked: all pieces of a word or none
  OptimizerConfig optimizer;
  Schedule schedule;  // its total_steps and width are the run's and the model's
  // Whichever comes first; 0: no such limit.
  std::int64_t max_steps = 0;
  std::int64_t max_epochs = 0;
  double max_minutes = 0;
  std::int64_t log_every = 50;  // steps
};

// BatchOptions' source_tokens: of texts with labels, batch_tokens limits the texts.
std::int64_t source_tokens(const TrainingOptions& training);

struct CheckpointConfig {
  std::int64_t every = 500;    // steps
  std::int64_t keep_last = 5;  // checkpoints
  std::int64_t keep_best = 5;  // by the validation's metric
  std::int64_t average = 5;    // of the best: their mean is the run's model
};

enum class ValidationMetric : std::uint8_t { bleu, chrf, loss, accuracy };

struct ValidationConfig {
  std::int64_t every = 500;                          // steps; 0: only at the end
  ValidationMetric metric = ValidationMetric::bleu;  // loss where nothing is translated
  bool lowercase = false;
  std::int64_t beam_size = 1;
  std::int64_t patience = 0;  // validations without a gain that end the run; 0: none do
};

// What `nunchi translate` does with the model unless it is told otherwise.
struct GenerationConfig {
  std::int64_t beam_size = 5;  // 1 where nothing is translated
  double normalize = 1;        // scores are divided by length to this power
  std::int64_t max_length = 256;
};

struct TrainConfig {
  std::filesystem::path output;  // the run's folder
  std::uint64_t seed = 1;
  std::filesystem::path initialize_from;  // a model folder whose weights the run starts from
  ModelConfig model;                      // of no family until it is set
  TokenizerConfig tokenizer;
  DataConfig data;
  TrainingOptions training;
  CheckpointConfig checkpoints;
  ValidationConfig validation;
  GenerationConfig generation;

  // Whether tokenizers are learned for the run: neither read from files nor taken over.
  bool learns_tokenizer() const { return tokenizer.source.empty() && initialize_from.empty(); }
  // Whether texts are learned to be told apart by labels.
  bool has_labels() const;
  std::filesystem::path cache() const { return data.cache.empty() ? output / "cache" : data.cache; }
};

// The file with assignments such as "training.max_steps=100" put into it. Throws Error with the
// file and line, or UsageError with the assignment, for what is wrong or does not fit together.
TrainConfig read_train_config(const std::filesystem::path& file,
                              std::span<const std::string> assignments = {});
TrainConfig read_train_config(const Options& options);

// Every key with its value but the model's without effect; reads back as a config that does the
// same.
std::string to_yaml(const TrainConfig& config);

}  // namespace nunchi
