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

// The objects that an objective uses; all of them outlive it.
struct ObjectiveParts {
  const Model& model;
  ContextBase& context;  // the model's; batches are made on it
  const Tokenizers& tokenizers;
  const TrainingOptions& options;
};

// The examples of an objective: pairs of source and target, texts, or lines with a label each (the
// source is the line, the target its label).
enum class Examples : std::uint8_t { pairs, text, labelled };

// What the model learns to answer with, and so how validation can judge it.
enum class Answers : std::uint8_t {
  translations,  // BLEU and chrF compare them with references
  texts,         // generated without a reference: only the loss judges them
  choices,       // a token or a label out of all: accuracy is the share of right ones
};

// How examples are made of the data.
struct ExampleNeeds {
  Examples kind = Examples::pairs;
  TextCut cut = TextCut::lines;  // of a text
  // Upper bound for the tokens that the model reads of an example with max_length tokens on a side,
  // </s> included.
  std::int64_t (*longest)(std::int64_t max_length, const TrainingOptions& options) =
      [](std::int64_t max_length, const TrainingOptions&) { return max_length; };
};

struct TokenizerNeeds {
  bool shared = false;  // one for both sides, which are parts of one text
  // Symbols for tokens that are taken out of a text; the tokenizer needs one of them.
  std::span<const std::string_view> symbols = {};
  bool adds_symbol = false;  // a tokenizer that is learned gets the first, if it has none
};

// Targets that are not text but decide something about the model: labels.
struct TargetNeeds {
  // The model's options for the targets of the training data.
  ModelConfig (*configure)(const ModelConfig& model, std::span<const CorpusPart> train);
  // Turns targets into tokens, in place of the model's tokenizer.
  std::unique_ptr<Tokenizer> (*tokenizer)(const Model& model);
  // Throws Error, with file and line, for a target of a part that the model does not know.
  void (*check)(const CorpusPart& part, std::span<const RawPair> pairs, const Model& model);
};

struct ObjectiveInfo {
  ObjectiveKind kind;
  std::string_view name;
  Answers answers = Answers::translations;
  ExampleNeeds examples = {};
  TokenizerNeeds tokenizer = {};
  const TargetNeeds* targets = nullptr;  // null: targets are text
  double label_smoothing = 0;            // the default
  // Keys of `training:` that no other objective reads.
  std::span<const std::string_view> keys = {};
  // Throws Error when the model or its tokenizer does not fit the objective.
  std::unique_ptr<Objective> (*make)(const ObjectiveParts& parts) = nullptr;

  bool generates() const { return answers != Answers::choices; }
  bool translates() const { return answers == Answers::translations; }
  // Whether it reads a key of `training:` that not all objectives read.
  bool reads(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }
};

const ObjectiveInfo& info_of(ObjectiveKind kind);
std::vector<Choice<ObjectiveKind>> objective_choices();

}  // namespace nunchi
