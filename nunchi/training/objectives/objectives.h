// The ways of training that there are, and what each needs: objectives.cpp has the list.
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

// What an objective is made of; all of it outlives the objective.
struct ObjectiveParts {
  const Model& model;
  ContextBase& context;  // the model's, on which batches are made
  const Tokenizers& tokenizers;
  const TrainingOptions& options;
};

// What an objective learns from: source and target, a text, or lines with a label each (the source
// is the line, the target its label).
enum class Examples : std::uint8_t { pairs, text, labelled };

struct ObjectiveInfo {
  ObjectiveKind kind;
  std::string_view name;
  Examples examples = Examples::pairs;
  TextCut cut = TextCut::lines;  // of a text, unless a config says otherwise
  bool only_cut = false;         // there is no other way to cut it
  double label_smoothing = 0;    // unless a config says otherwise
  bool generates = true;         // what it teaches is to say texts
  bool masks = false;            // mask_share and whole_words are its keys
  bool one_tokenizer = false;    // for both sides, which are one text
  // Of which a tokenizer needs one: symbols for what is taken out of a text.
  std::span<const std::string_view> symbols = {};
  bool counts_right = false;  // validation can tell how much of what is to be said is right
  // Tokens that the model sees at the most of an example of so many (of a side, </s> included).
  std::int64_t (*longest)(std::int64_t max_length, const TrainingOptions& options) =
      [](std::int64_t max_length, const TrainingOptions&) { return max_length; };
  // Throws Error when the model or its tokenizer cannot do what is asked of it.
  std::unique_ptr<Objective> (*make)(const ObjectiveParts& parts) = nullptr;

  // Whether validation can compare translations with references, for BLEU and chrF.
  bool translates() const { return examples == Examples::pairs; }
};

const ObjectiveInfo& info_of(ObjectiveKind kind);
std::vector<Choice<ObjectiveKind>> objective_choices();

}  // namespace nunchi
