#include "nunchi/models/family.h"

namespace nunchi {
namespace {

// The value as text. A list gives an empty text: no option that affects what a model computes is a
// list.
std::string text_of(const OptionValue* value) {
  return value == nullptr ? "not there" : value->text;
}

}  // namespace

const FamilyConfig& ModelConfig::operator*() const {
  if (options_ == nullptr) throw Error("the model's family is unknown.");
  return *options_;
}

void ModelConfig::fail_wrong_family() const {
  throw Error("the model is of the family " + (*this)->family() +
              ", but options of another family were requested (internal error).");
}

std::string Model::family() const { return config_->family(); }

std::string Model::config_json() const { return config_->to_json(); }

const ClassifierConfig* as_classifier_config(const ModelConfig& config) {
  return dynamic_cast<const ClassifierConfig*>(&*config);
}

std::optional<OptionDifference> function_difference(const ModelConfig& first,
                                                    const ModelConfig& second) {
  const OptionValue options = first->function_options(), others = second->function_options();
  for (const OptionValue& option : options.items) {
    const OptionValue* other = others.find(option.key);
    if (text_of(other) == option.text) continue;
    return OptionDifference{option.key, option.text, text_of(other)};
  }
  for (const OptionValue& other : others.items) {
    if (options.find(other.key) == nullptr) {
      return OptionDifference{other.key, text_of(nullptr), other.text};
    }
  }
  return std::nullopt;
}

}  // namespace nunchi
