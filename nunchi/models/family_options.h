// The options of a family: what is the same for all of them. A config says its fields once:
//
//   struct GptConfig final : FamilyOptions<GptConfig, StackConfig> {
//     static constexpr const char* kFamily = "gpt";
//     using Made = Gpt;                                       // the model
//     static std::span<const Preset<GptConfig>> presets();    // shapes that people know by name
//     static void vocabularies(auto& in, auto& config);       // what the tokenizers decide
//     static void shape(auto& in, auto& config);              // everything else
//     void check(const FailOption& fail) const;               // what has to fit together
//     void keep_function();                                   // see FamilyConfig::function()
//   };
//
// The members of FamilyOptions are defined in family_definitions.h, and instantiated in the
// config's .cpp, which is the only one to know vocabularies() and shape().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "nunchi/models/family.h"

namespace nunchi {

inline constexpr std::int64_t kLargestVocabulary = 16 << 20;

template <class Config>
struct Preset {
  std::string_view name;
  void (*apply)(Config& defaults);
};

template <class Config, class Base>
struct FamilyOptions : Base {
  // The shape of that name. Throws UsageError for another.
  static Config preset(const std::string& name, std::int64_t vocabulary);

  std::string family() const override;
  std::unique_ptr<Model> make(const ModelInputs& inputs) const override;
  void write_training_options(OptionWriter& out) const override;
  OptionValue function() const override;

  // config.json's text, both ways. What has no effect is not written, and is read where it stands.
  // `where` names the file in errors: wrong types, sizes out of range, unknown keys (with the
  // nearest known one).
  std::string to_json() const;
  static Config from_json(const std::string& text, const std::string& where);
  // The same from the reader of a whole config.json.
  static Config from_options(OptionReader& in);
  // `model:` of a training config: the keys of config.json but for the vocabularies, and `preset`,
  // whose values the others override.
  static Config from_training_options(OptionReader& in);

  // Itself, before anything is built on it. Throws Error when its sizes do not fit together.
  const Config& checked() const;

 private:
  const Config& self() const { return static_cast<const Config&>(*this); }
};

}  // namespace nunchi
