#include "nunchi/training/objectives/translation.h"

#include "nunchi/training/config/train_config.h"

namespace nunchi {

TranslationObjective::TranslationObjective(const ObjectiveParts& parts)
    : TranslationObjective(as_translation_model(parts.model), parts.context,
                           parts.tokenizers.decoder(), parts.options.label_smoothing) {}

ObjectiveLoss TranslationObjective::loss(const HostBatch& batch,
                                         std::int32_t first_sentence) const {
  std::vector<Tokens> targets;
  for (const Tokens& target : batch.targets) targets.push_back(tokens_.with_forced_first(target));
  const PairBatch pairs = make_pair_batch(
      make_source(context_, batch.sources, model_.input_sizes(), first_sentence), targets,
      model_.target_vocabulary(), {.tokens = tokens_, .first_sentence = first_sentence});
  const double smoothing = context_.is_training() ? label_smoothing_ : 0;
  return {model_.loss(pairs, {.smoothing = smoothing}).total, pairs.target.rows.rows};
}

}  // namespace nunchi
