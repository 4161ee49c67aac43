// How good a model is on sentences that it does not learn from: the objective's loss and, of a
// model that translates, BLEU and chrF of what it really does.
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
  const PairStore& pairs;    // for the loss
  const CorpusPart& corpus;  // the same as text: where something is translated, with references
};

// Used by one thread at a time; the parts outlive it.
class Validator {
 public:
  // Reads the corpus. Throws Error when there is nothing in it.
  Validator(const ValidatorParts& parts, const TrainConfig& config);

  // Translates only if the config's metric asks for it. Nothing when `stop` became true meanwhile.
  std::optional<ValidationScores> operator()(const std::atomic<bool>* stop = nullptr);

 private:
  // The loss and, where the objective counts it, the accuracy.
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
