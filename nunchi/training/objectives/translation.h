// Translation by teacher forcing: the decoder reads the true tokens so far and predicts the next.
#pragma once

#include <utility>

#include "nunchi/models/sequence_model.h"
#include "nunchi/training/objectives/objectives.h"

namespace nunchi {

class TranslationObjective final : public Objective {
 public:
  // Throws Error when the model is not an encoder-decoder.
  explicit TranslationObjective(const ObjectiveParts& parts);
  TranslationObjective(const TranslationModel& model, ContextBase& context, DecoderTokens tokens,
                       double label_smoothing)
      : model_(model),
        context_(context),
        tokens_(std::move(tokens)),
        label_smoothing_(label_smoothing) {}

  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const TranslationModel& model_;
  ContextBase& context_;
  DecoderTokens tokens_;
  double label_smoothing_;
};

}  // namespace nunchi
