// Measures a model on the validation data: the objective's loss, its accuracy if it has one and, if
// the metric asks for them, BLEU and chrF of translations.
#pragma once

#include <atomic>
#include <optional>

#include "nunchi/data/batch_order.h"
#include "nunchi/data/corpus.h"
#include "nunchi/inference/translator.h"
#include "nunchi/training/objectives/objective.h"
#include "nunchi/training/run/metrics_log.h"
#include "nunchi/training/validation_scores.h"

namespace nunchi {

struct ValidatorParts {
  const Model& model;
  const Objective& objective;
  const Tokenizers& tokenizers;
  const PairStore& pairs;          // for the loss
  std::span<const RawPair> lines;  // the same pairs as text: sources to translate and references
};

// Not thread-safe. The parts must outlive the validator, except `lines`, which is copied.
class Validator {
 public:
  // Reads the lines only if needs_lines(). Throws Error when there are no pairs.
  Validator(const ValidatorParts& parts, const TrainConfig& config);

  // Whether the config's metric compares translations with references.
  static bool needs_lines(const TrainConfig& config);

  // Translates only if needs_lines(). Returns no scores if `stop` becomes true during the call.
  std::optional<ValidationScores> operator()(const std::atomic<bool>* stop = nullptr);
  // A few sentences, always the same, with the translations of the last call. Empty unless
  // needs_lines().
  std::vector<SampleTranslation> samples() const;

 private:
  // The loss and, if the objective reports it, the accuracy; none if stopped.
  std::optional<ValidationScores> loss(const std::atomic<bool>* stop) const;
  // Fills translations_; false if stopped.
  bool translate(const std::atomic<bool>* stop);

  const Objective& objective_;
  BatchOrder order_;
  std::optional<Translator> translator_;  // only if needs_lines()
  bool lowercase_;
  std::vector<SourceLine> sources_;
  std::vector<std::string> references_, translations_;
};

}  // namespace nunchi
