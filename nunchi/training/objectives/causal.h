// Language modelling: each token of a text is predicted from those before it.
#pragma once

#include "nunchi/models/sequence_model.h"
#include "nunchi/training/objectives/objectives.h"

namespace nunchi {

class CausalObjective final : public Objective {
 public:
  // Throws Error when the model is not a language model.
  explicit CausalObjective(const ObjectiveParts& parts);
  CausalObjective(const LanguageModel& model, ContextBase& context, double label_smoothing)
      : model_(model), context_(context), label_smoothing_(label_smoothing) {}

  // Each target is a window of a text: the input tokens and one more token.
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const LanguageModel& model_;
  ContextBase& context_;
  double label_smoothing_;
};

}  // namespace nunchi
