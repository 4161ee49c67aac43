#include "nunchi/models/sequence_model.h"

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// An ability of a model as a verb phrase, and its command.
struct Ability {
  const char* what;
  const char* command;
};
constexpr Ability kTranslates = {"translate", "nunchi translate"};
constexpr Ability kContinues = {"continue a text", "nunchi generate"};
constexpr Ability kFillsIn = {"predict masked tokens", "nunchi fill"};
constexpr Ability kEmbeds = {"embed texts", "nunchi embed"};
constexpr Ability kClassifies = {"classify texts", "nunchi classify"};
constexpr Ability kScores = {"score texts", "nunchi score"};

[[noreturn]] void refuse(const Model& model, const Ability& requested) {
  std::string sentence =
      "a model of the family " + model.family() + " cannot " + requested.what + ".";
  const auto offer = [&](const Ability& ability) {
    sentence += std::string(" It can ") + ability.what + ": see '" + ability.command + " --help'.";
  };
  if (ability_of<TranslationModel>(model) != nullptr) offer(kTranslates);
  if (ability_of<LanguageModel>(model) != nullptr) offer(kContinues);
  if (ability_of<MaskedLanguageModel>(model) != nullptr) offer(kFillsIn);
  if (ability_of<Classifier>(model) != nullptr) offer(kClassifies);
  throw Error(sentence);
}

}  // namespace

template <>
const Classifier* ability_of(const Model& model) {
  const auto* found = dynamic_cast<const Classifier*>(&model);
  return found != nullptr && !found->labels().empty() ? found : nullptr;
}

const TranslationModel& as_translation_model(const Model& model) {
  if (const auto* found = ability_of<TranslationModel>(model)) return *found;
  refuse(model, kTranslates);
}

const LanguageModel& as_language_model(const Model& model) {
  if (const auto* found = ability_of<LanguageModel>(model)) return *found;
  refuse(model, kContinues);
}

const MaskedLanguageModel& as_masked_language_model(const Model& model) {
  if (const auto* found = ability_of<MaskedLanguageModel>(model)) return *found;
  refuse(model, kFillsIn);
}

const MaskedLanguageModel& as_embedding_model(const Model& model) {
  if (const auto* found = ability_of<MaskedLanguageModel>(model)) return *found;
  refuse(model, kEmbeds);
}

const SequenceModel& as_scoring_model(const Model& model) {
  if (const auto* found = ability_of<SequenceModel>(model)) return *found;
  refuse(model, kScores);
}

const Classifier& as_classifier(const Model& model) {
  if (const auto* found = ability_of<Classifier>(model)) return *found;
  if (dynamic_cast<const Classifier*>(&model) != nullptr) {
    throw Error("this model of the family " + model.family() +
                " has no labels yet: fine-tune it with 'training.objective: classification'.");
  }
  refuse(model, kClassifies);
}

}  // namespace nunchi
