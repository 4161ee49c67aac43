#include "nunchi/inference/model_folder.h"

#include "nunchi/decoding/generation_config.h"
#include "nunchi/models/format/folder.h"

namespace nunchi {
namespace {

template <class Ability>
const Ability& as(const Model& model);
template <>
const TranslationModel& as(const Model& model) {
  return as_translation_model(model);
}
template <>
const LanguageModel& as(const Model& model) {
  return as_language_model(model);
}
template <>
const MaskedLanguageModel& as(const Model& model) {
  return as_masked_language_model(model);
}

template <class Ability>
std::unique_ptr<Model> load(const std::filesystem::path& folder, ContextBase& context) {
  as<Ability>(*configured_model(folder));
  return load_model(folder, context);
}

}  // namespace

template <class Ability>
ModelFolder<Ability>::ModelFolder(ContextBase& context, const std::filesystem::path& folder)
    : model_(load<Ability>(folder, context)),
      tokenizers_(load_tokenizers(folder)),
      search_(load_generation_config(folder)) {
  tokenizers_.check_fit(as<Ability>(*model_), folder.string());
}

template class ModelFolder<TranslationModel>;
template class ModelFolder<LanguageModel>;
template class ModelFolder<MaskedLanguageModel>;

}  // namespace nunchi
