#include "nunchi/training/objectives/causal.h"

#include "nunchi/training/config/train_config.h"

namespace nunchi {

CausalObjective::CausalObjective(const ObjectiveParts& parts)
    : CausalObjective(as_language_model(parts.model), parts.context,
                      parts.options.label_smoothing) {}

ObjectiveLoss CausalObjective::loss(const HostBatch& batch, std::int32_t first_sentence) const {
  const TextBatch text =
      make_text_batch(context_, batch.targets, model_.target_vocabulary(), first_sentence);
  const double smoothing = context_.is_training() ? label_smoothing_ : 0;
  return {model_.loss(text, {.smoothing = smoothing}).total, text.inputs.rows.rows};
}

}  // namespace nunchi
