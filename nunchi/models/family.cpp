#include "nunchi/models/family.h"

namespace nunchi {
namespace {

// As it would be written; of lists, which do not decide a function, nothing.
std::string text_of(const OptionValue* value) {
  return value == nullptr ? "not there" : value->text;
}

}  // namespace

ModelConfig FamilyConfig::with_labels(const std::vector<std::string>& /*labels*/) const {
  throw Error("a model of the family " + family() + " cannot be taught to classify.");
}

std::optional<OptionDifference> function_difference(const FamilyConfig& first,
                                                    const FamilyConfig& second) {
  const OptionValue options = first.function(), others = second.function();
  for (const OptionValue& option : options.items) {
    const OptionValue* other = others.find(option.key);
    if (text_of(other) == option.text) continue;
    return OptionDifference{option.key, option.text, text_of(other)};
  }
  return std::nullopt;
}

}  // namespace nunchi
