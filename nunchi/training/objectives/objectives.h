// The training objectives and their requirements; the list is in objectives.cpp.
#pragma once

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

struct ObjectiveInfo {
  ObjectiveKind kind;
  std::string_view name;
  Examples examples = Examples::pairs;
  TextCut cut = TextCut::lines;  // the default for texts
  bool only_cut = false;         // texts cannot be cut in another way
  double label_smoothing = 0;    // the default
  bool generates = true;         // the model learns to generate text
  bool masks = false;            // mask_share and whole_words are its keys
  bool one_tokenizer = false;    // both sides have the same tokenizer
  // A tokenizer needs at least one of these symbols, which replace parts of a text.
  std::span<const std::string_view> symbols = {};
  bool counts_right = false;  // validation can measure accuracy
  // Upper bound for the tokens that the model reads of an example with max_length tokens on a side,
  // </s> included.
  std::int64_t (*longest)(std::int64_t max_length, const TrainingOptions& options) =
      [](std::int64_t max_length, const TrainingOptions&) { return max_length; };
  // Throws Error when the model or its tokenizer does not fit the objective.
  std::unique_ptr<Objective> (*make)(const ObjectiveParts& parts) = nullptr;

  // Whether validation can compare translations with references, for BLEU and chrF.
  bool translates() const { return examples == Examples::pairs; }
};

const ObjectiveInfo& info_of(ObjectiveKind kind);
std::vector<Choice<ObjectiveKind>> objective_choices();

}  // namespace nunchi
