// The members of FamilyOptions: for the .cpp of a family's config, which instantiates them.
#pragma once

#include <string>
#include <vector>

#include "nunchi/base/printable.h"
#include "nunchi/models/family_options.h"

namespace nunchi {
namespace family_options {

template <class Config>
void take_family(OptionReader& in) {
  std::string family = Config::kFamily;
  in.text("family", family);
  if (family != Config::kFamily) in.fail("family", std::string("is ") + Config::kFamily + " here");
}

// A reader that refuses the keys it is asked for.
struct TokenizersDecide {
  OptionReader& in;
  void integer(std::string_view key, auto&, std::int64_t, std::int64_t) {
    in.refuse(key, "the tokenizers decide it.");
  }
  void optional_integer(std::string_view key, auto&, std::int64_t, std::int64_t, std::int64_t) {
    in.refuse(key, "the training data decide it.");
  }
};

// Sets what it is asked for.
struct Sizes {
  ModelInputs inputs;
  void integer(std::string_view key, auto& field, std::int64_t, std::int64_t) const {
    field = key == "source_vocabulary" ? inputs.source_vocabulary : inputs.target_vocabulary;
  }
  void optional_integer(std::string_view, auto& field, std::int64_t, std::int64_t,
                        std::int64_t) const {
    field = inputs.source_features;
  }
};

// The shape, without options that have no effect.
template <class Config>
void write_used(OptionWriter& out, const Config& config) {
  Config::shape(out, config);
  out.leave_out([&](std::string_view key) { return !config.unused(key).empty(); });
}

// An option that is given and has no effect is a mistake. The value that it would have anyway, by
// default or of the preset, may stand there.
template <class Config>
void check_used(const Config& config, const Config& otherwise, const OptionReader& in) {
  const auto options_of = [](const Config& one) {
    OptionWriter out;
    Config::shape(out, one);
    return out.tree();
  };
  const OptionValue given = options_of(config), usual = options_of(otherwise);
  for (const OptionValue& option : given.items) {
    const std::string why = config.unused(option.key);
    if (!why.empty() && option.text != usual.find(option.key)->text) {
      in.fail({option.key, "position", "relative_kind", "preset"}, "has no effect: " + why);
    }
  }
}

}  // namespace family_options

template <class Config, class Base>
Config FamilyOptions<Config, Base>::preset(const std::string& name, std::int64_t vocabulary) {
  std::string known;
  for (const Preset<Config>& preset : Config::presets()) {
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
    if (preset.name != name) continue;
    Config config;
    const family_options::Sizes sizes{{vocabulary, vocabulary}};
    Config::vocabularies(sizes, config);
    preset.apply(config);
    return config;
  }
  throw UsageError("there is no preset '" + printable(name) + "' of the family " + Config::kFamily +
                   "; known are " + known + ".");
}

template <class Config, class Base>
std::string FamilyOptions<Config, Base>::family() const {
  return Config::kFamily;
}

template <class Config, class Base>
std::unique_ptr<Model> FamilyOptions<Config, Base>::make(const ModelInputs& inputs) const {
  Config config = self();
  if constexpr (!requires { config.source_features; }) {
    if (inputs.source_features > 0) {
      throw Error(std::string("a model of the family ") + Config::kFamily +
                  " reads tokens, not features.");
    }
  }
  const family_options::Sizes sizes{inputs};
  Config::vocabularies(sizes, config);
  return std::make_unique<typename Config::Made>(config);
}

template <class Config, class Base>
void FamilyOptions<Config, Base>::write_training_options(OptionWriter& out) const {
  out.text("family", Config::kFamily);
  family_options::write_used(out, self());
}

template <class Config, class Base>
OptionValue FamilyOptions<Config, Base>::function() const {
  Config config = self();
  config.keep_function();
  OptionWriter out;
  out.text("family", Config::kFamily);
  family_options::write_used(out, config);
  Config::vocabularies(out, config);
  return out.tree();
}

template <class Config, class Base>
std::string FamilyOptions<Config, Base>::to_json() const {
  OptionWriter out;
  out.text("family", Config::kFamily);
  Config::vocabularies(out, self());
  family_options::write_used(out, self());
  return nunchi::to_json(out.tree());
}

template <class Config, class Base>
Config FamilyOptions<Config, Base>::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

template <class Config, class Base>
Config FamilyOptions<Config, Base>::from_options(OptionReader& in) {
  Config config;
  family_options::take_family<Config>(in);
  Config::vocabularies(in, config);
  Config::shape(in, config);
  in.finish();
  config.check(in.failing());
  return config;
}

template <class Config, class Base>
Config FamilyOptions<Config, Base>::from_training_options(OptionReader& in) {
  Config config;
  family_options::take_family<Config>(in);
  if (std::string_view name; in.has("preset")) {
    std::vector<Choice<std::string_view>> names;
    for (const Preset<Config>& known : Config::presets()) names.push_back({known.name, known.name});
    in.choice("preset", name, names);
    config = preset(std::string(name), Config().target_vocabulary);
  }
  const Config otherwise = config;
  family_options::TokenizersDecide refusing{in};
  Config::vocabularies(refusing, config);
  Config::shape(in, config);
  in.finish();
  config.take_defaults(in);
  config.check(in.failing());
  family_options::check_used(config, otherwise, in);
  return config;
}

template <class Config, class Base>
const Config& FamilyOptions<Config, Base>::checked() const {
  const auto fail = [](std::initializer_list<std::string_view> keys, const std::string& what) {
    throw Error("the model's options: '" + std::string(*keys.begin()) + "' " + what + ".");
  };
  self().check(fail);
  return self();
}

}  // namespace nunchi
