// Translation by teacher forcing: the decoder sees the true words so far and is to say the next.
#pragma once

#include "nunchi/models/sequence_model.h"
#include "nunchi/training/objectives/objective.h"

namespace nunchi {

class TranslationObjective final : public Objective {
 public:
  // Batches are made on `context`, the model's.
  TranslationObjective(const TranslationModel& model, ContextBase& context, double label_smoothing)
      : model_(model), context_(context), label_smoothing_(label_smoothing) {}

  Variable loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const TranslationModel& model_;
  ContextBase& context_;
  double label_smoothing_;
};

}  // namespace nunchi
