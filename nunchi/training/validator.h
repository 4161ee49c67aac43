// Measures a model on sentences that it does not learn from: the objective's loss and, if the model
// translates, BLEU and chrF of its translations.
#pragma once

#include <atomic>
#include <optional>

#include "nunchi/data/batch_order.h"
#include "nunchi/data/corpus.h"
#include "nunchi/inference/translator.h"
#include "nunchi/training/objectives/objective.h"
#include "nunchi/training/validation_scores.h"

namespace nunchi {

struct ValidatorParts {
  const Model& model;
  const Objective& objective;
  const Tokenizers& tokenizers;
  const PairStore& pairs;          // for the loss
  std::span<const RawPair> lines;  // the same as text, for translations and their references
};

// Used by one thread at a time; the parts outlive it.
class Validator {
 public:
  // The lines are only looked at if needs_lines(). Throws Error when there are no pairs.
  Validator(const ValidatorParts& parts, const TrainConfig& config);

  // Whether the config's metric compares translations with references.
  static bool needs_lines(const TrainConfig& config);

  // Translates only if the config's metric asks for it. No scores when `stop` became true
  // meanwhile.
  std::optional<ValidationScores> operator()(const std::atomic<bool>* stop = nullptr);

 private:
  // The loss and, if the objective counts it, the accuracy.
  std::optional<ValidationScores> loss(const std::atomic<bool>* stop) const;
  // False when it was stopped.
  bool translate(const std::atomic<bool>* stop);

  const Objective& objective_;
  BatchOrder order_;
  std::optional<Translator> translator_;  // only if the metric asks for it
  bool lowercase_;
  std::vector<SourceLine> sources_;
  std::vector<std::string> references_, translations_;
};

}  // namespace nunchi
