#include "nunchi/training/objectives/translation.h"

#include "nunchi/training/config/train_config.h"

namespace nunchi {

TranslationObjective::TranslationObjective(const ObjectiveParts& parts)
    : TranslationObjective(as_translation_model(parts.model), parts.context,
                           parts.options.label_smoothing) {}

ObjectiveLoss TranslationObjective::loss(const HostBatch& batch,
                                         std::int32_t first_sentence) const {
  const PairBatch pairs = make_pair_batch(context_, batch.sources, batch.targets,
                                          {model_.source_vocabulary(), model_.target_vocabulary()},
                                          {.first_sentence = first_sentence});
  const double smoothing = context_.is_training() ? label_smoothing_ : 0;
  return {model_.loss(pairs, {.smoothing = smoothing}).total, pairs.target.rows.rows};
}

}  // namespace nunchi
