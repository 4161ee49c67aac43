#include "nunchi/models/sequence_model.h"

#include "nunchi/base/error.h"

namespace nunchi {

const TranslationModel& as_translation_model(const Model& model) {
  const auto* found = dynamic_cast<const TranslationModel*>(&model);
  if (found == nullptr)
    throw Error("a model of the family " + model.family() + " cannot translate.");
  return *found;
}

}  // namespace nunchi
