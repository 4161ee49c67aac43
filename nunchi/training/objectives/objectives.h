// The training objectives and their requirements; the list is in objectives.cpp.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nunchi/base/options.h"
#include "nunchi/data/prepare.h"
#include "nunchi/models/family.h"
#include "nunchi/models/format/tokenizers.h"
#include "nunchi/training/objectives/objective.h"

namespace nunchi {

struct TrainingOptions;

// The objects that an objective uses; all must outlive it.
struct ObjectiveParts {
  const Model& model;
  ContextBase& context;  // the model's context, on which batches are made
  const Tokenizers& tokenizers;
  const TrainingOptions& options;
};

// The kind of examples that an objective learns from.
enum class Examples : std::uint8_t {
  pairs,     // source and target
  text,      // plain text, without a source
  labelled,  // the source is a line of text, the target its label
};

// The kind of output that the model learns to produce. It decides which metrics validation can use
// in addition to the loss.
enum class OutputKind : std::uint8_t {
  translations,  // compared with references: BLEU and chrF
  texts,         // generated text without a reference: only the loss
  choices,       // one token or label out of all: accuracy, the fraction of correct choices
};

// The examples that an objective needs.
struct ExampleNeeds {
  Examples kind = Examples::pairs;
  TextCut cut = TextCut::lines;  // how a text becomes examples
  // Upper bound for the tokens that the model reads for an example that has max_length tokens per
  // side, </s> included.
  std::int64_t (*max_tokens)(std::int64_t max_length, const TrainingOptions& options) =
      [](std::int64_t max_length, const TrainingOptions&) { return max_length; };
};

// The tokenizers that an objective needs.
struct TokenizerNeeds {
  bool shared = false;  // both sides must have one tokenizer, since they come from one text
  // Symbols that replace removed or masked tokens. The tokenizer must have one of them.
  std::span<const std::string_view> symbols = {};
  // Whether the first symbol is added by default to a tokenizer that is learned without any.
  bool adds_symbol = false;
};

// Callbacks for targets that are not text, such as labels.
struct TargetNeeds {
  // The model's options, completed with the targets of the training data.
  ModelConfig (*configure)(const ModelConfig& model, std::span<const CorpusPart> train);
  // Makes the tokenizer of the targets, which replaces the model's target tokenizer.
  std::unique_ptr<Tokenizer> (*tokenizer)(const Model& model);
  // Throws Error, with file and line, for a target in `pairs`, the pairs of `part`, that the model
  // does not know.
  void (*check)(const CorpusPart& part, std::span<const RawPair> pairs, const Model& model);
};

struct ObjectiveInfo {
  ObjectiveKind kind;
  std::string_view name;
  OutputKind output = OutputKind::translations;
  ExampleNeeds examples = {};
  TokenizerNeeds tokenizer = {};
  const TargetNeeds* targets = nullptr;  // null: targets are text
  double label_smoothing = 0;            // default of training.label_smoothing
  // Keys of `training:` that only this objective reads.
  std::span<const std::string_view> keys = {};
  // Throws Error when the model or its tokenizer does not fit the objective.
  std::unique_ptr<Objective> (*make)(const ObjectiveParts& parts) = nullptr;

  bool generates() const { return output != OutputKind::choices; }
  bool translates() const { return output == OutputKind::translations; }
  // Whether the objective reads `key`, a key of `training:` that not all objectives read.
  bool reads(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }
};

const ObjectiveInfo& info_of(ObjectiveKind kind);
std::vector<Choice<ObjectiveKind>> objective_choices();

}  // namespace nunchi
