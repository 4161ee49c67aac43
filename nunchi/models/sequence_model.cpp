#include "nunchi/models/sequence_model.h"

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// What a model can do: in words, and the command for it.
struct Ability {
  const char* what;
  const char* command;
};
constexpr Ability kTranslates = {"translate", "nunchi translate"};
constexpr Ability kGoesOn = {"go on with a text", "nunchi generate"};

template <class Can>
const Can* can(const Model& model) {
  return dynamic_cast<const Can*>(&model);
}

[[noreturn]] void refuse(const Model& model, const Ability& asked) {
  std::string sentence = "a model of the family " + model.family() + " cannot " + asked.what + ".";
  const auto offer = [&](const Ability& has) {
    sentence += std::string(" It can ") + has.what + ": see '" + has.command + " --help'.";
  };
  if (can<TranslationModel>(model) != nullptr) offer(kTranslates);
  if (can<LanguageModel>(model) != nullptr) offer(kGoesOn);
  throw Error(sentence);
}

}  // namespace

const TranslationModel& as_translation_model(const Model& model) {
  if (const auto* found = can<TranslationModel>(model)) return *found;
  refuse(model, kTranslates);
}

const LanguageModel& as_language_model(const Model& model) {
  if (const auto* found = can<LanguageModel>(model)) return *found;
  refuse(model, kGoesOn);
}

}  // namespace nunchi
