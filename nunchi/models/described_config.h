// Makes a FamilyConfig from a family's plain struct of options. The family's _config.cpp describes
// the fields once:
//
//   struct GptFields {
//     using Config = GptConfig;
//     using Model = Gpt;
//     static const FamilyInfo<Config>& info(const Config& config);
//     static void inputs(auto& in, auto& config);  // tokenizers and data decide these
//     static void dropouts(auto& in, auto& config);
//     static void shape(auto& in, auto& config);  // all others, including the dropouts
//   };
//
// The struct also has these functions; the first four are described in FamilyConfig:
//
//   objectives(), longest(), shared_vocabulary_reason(), needs()
//   check(fail)              calls `fail` for values that contradict one another
//   why_unused(key)          why an option has no effect; empty if it has one
//   take_defaults(given)     sets defaults that depend on the options given in a training config
//   keep_function_options()  resets the options that do not decide what given weights compute; see
//                            FamilyConfig::function_options()
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/base/json_options.h"
#include "nunchi/base/printable.h"
#include "nunchi/models/family.h"
#include "nunchi/models/typed_config.h"

namespace nunchi {

template <class Config>
struct Preset {
  std::string_view name;
  void (*apply)(Config& defaults);
};

template <class Config>
struct FamilyInfo {
  std::string_view name;
  Config (*defaults)();
  std::span<const Preset<Config>> presets;
};

namespace described {

// Writes the options that config.json and a training config share.
template <class Fields>
void write_shape(OptionWriter& out, const typename Fields::Config& config) {
  Fields::shape(out, config);
  out.leave_out([&](std::string_view key) { return !config.why_unused(key).empty(); });
}

// Refuses the keys that Fields::inputs names.
struct RefuseInputs {
  OptionReader& in;
  void integer(std::string_view key, auto&, std::int64_t, std::int64_t) {
    in.refuse(key, "the tokenizers decide it.");
  }
  void optional_integer(std::string_view key, auto&, std::int64_t, std::int64_t, std::int64_t) {
    in.refuse(key, "the training data decide it.");
  }
};

// Sets the fields that Fields::inputs names.
struct SetInputs {
  ModelInputs inputs;
  void integer(std::string_view key, auto& field, std::int64_t, std::int64_t) const {
    field = key == "source_vocabulary" ? inputs.source_vocabulary : inputs.target_vocabulary;
  }
  void optional_integer(std::string_view, auto& field, std::int64_t, std::int64_t,
                        std::int64_t) const {
    field = inputs.source_features;
  }
};

struct SetDropouts {
  double rate;
  template <class T>
  void fraction(std::string_view, T& field) const {
    field = static_cast<T>(rate);
  }
};

struct ListDropouts {
  std::vector<FamilyConfig::DropoutOption>& found;
  void fraction(std::string_view key, float field) const {
    // The shortest number that rounds to this float: 0.1, not 0.10000000149.
    OptionWriter out;
    out.fraction(key, field);
    found.push_back({std::string(key), std::stod(out.tree().items.front().text)});
  }
};

// Fails for an option that is given but has no effect. Its default value, or the preset's, is
// allowed: saved configs contain it.
template <class Fields, class Config>
void check_used(const Config& config, const Config& base, const OptionReader& in) {
  const auto options_of = [](const Config& any) {
    OptionWriter out;
    Fields::shape(out, any);
    return out.tree();
  };
  const OptionValue options = options_of(config), base_options = options_of(base);
  for (const OptionValue& option : options.items) {
    const std::string why = config.why_unused(option.key);
    if (!why.empty() && option.text != base_options.find(option.key)->text) {
      in.fail({option.key, "position", "relative_kind", "preset"}, "has no effect: " + why);
    }
  }
}

template <class Config>
Config preset(const FamilyInfo<Config>& info, const std::string& name) {
  for (const Preset<Config>& preset : info.presets) {
    if (preset.name != name) continue;
    Config config = info.defaults();
    preset.apply(config);
    return config;
  }
  throw UsageError("the family " + std::string(info.name) + " has no preset '" + printable(name) +
                   "'.");
}

template <class Fields, class Config>
Config read(OptionReader& in, const FamilyInfo<Config>& info) {
  Config config = info.defaults();
  Fields::inputs(in, config);
  Fields::shape(in, config);
  in.finish();
  config.check(in.failing());
  return config;
}

template <class Fields, class Config>
Config read_training_options(OptionReader& in, const FamilyInfo<Config>& info) {
  Config config = info.defaults();
  if (std::string_view name; in.has("preset")) {
    std::vector<Choice<std::string_view>> names;
    for (const Preset<Config>& known : info.presets) names.push_back({known.name, known.name});
    in.choice("preset", name, names);
    config = preset(info, std::string(name));
  }
  const Config base = config;  // the defaults or the preset
  RefuseInputs refuse_inputs{in};
  Fields::inputs(refuse_inputs, config);
  Fields::shape(in, config);
  in.finish();
  config.take_defaults(in);
  config.check(in.failing());
  check_used<Fields>(config, base, in);
  return config;
}

}  // namespace described

template <class Fields>
class DescribedConfig : public TypedConfig<typename Fields::Config> {
 public:
  using Config = typename Fields::Config;

  explicit DescribedConfig(Config config) : TypedConfig<Config>(std::move(config)) {}

  std::string family() const override { return std::string(Fields::info(this->options()).name); }

  std::unique_ptr<Model> make() const override {
    return std::make_unique<typename Fields::Model>(this->options());
  }
  ModelConfig with_inputs(const ModelInputs& inputs) const override {
    constexpr bool kCanReadFeatures = requires(Config config) { config.source_features; };
    if (!kCanReadFeatures && inputs.source_features > 0) {
      throw Error("a model of the family " + family() + " reads tokens, not features.");
    }
    return changed([&](Config& config) {
      const described::SetInputs set{inputs};
      Fields::inputs(set, config);
    });
  }

  std::string to_json() const override {
    OptionWriter out;
    out.text("family", family());
    Fields::inputs(out, this->options());
    described::write_shape<Fields>(out, this->options());
    return nunchi::to_json(out.tree());
  }
  void write_training_options(OptionWriter& out) const override {
    out.text("family", family());
    described::write_shape<Fields>(out, this->options());
  }
  OptionValue function_options() const override {
    Config config = this->options();
    config.keep_function_options();
    OptionWriter out;
    out.text("family", family());
    described::write_shape<Fields>(out, config);
    Fields::inputs(out, config);
    return out.tree();
  }

  std::vector<ObjectiveKind> objectives() const override { return this->options().objectives(); }
  std::int64_t model_width() const override { return this->options().width; }
  std::int64_t longest() const override { return this->options().longest(); }
  std::string shared_vocabulary_reason() const override {
    return this->options().shared_vocabulary_reason();
  }
  FamilyConfig::Needs needs() const override { return this->options().needs(); }

  std::vector<FamilyConfig::DropoutOption> dropouts() const override {
    std::vector<FamilyConfig::DropoutOption> found;
    const described::ListDropouts list{found};
    Fields::dropouts(list, this->options());
    return found;
  }
  ModelConfig with_dropout(double rate) const override {
    if (!(rate >= 0 && static_cast<float>(rate) < 1)) {
      throw Error("a dropout must be at least 0 and below 1.");
    }
    return changed([&](Config& config) {
      const described::SetDropouts set{rate};
      Fields::dropouts(set, config);
    });
  }

 private:
  template <class Change>
  ModelConfig changed(const Change& change) const {
    Config config = this->options();
    change(config);
    return config;
  }
};

// The registry's entry of a family; `info` must outlive it.
template <class Fields>
Family describe_family(const FamilyInfo<typename Fields::Config>& info) {
  using Config = typename Fields::Config;
  Family family{.name = std::string(info.name)};
  for (const Preset<Config>& preset : info.presets) family.presets.emplace_back(preset.name);
  family.preset = [&info](const std::string& name) -> ModelConfig {
    return described::preset(info, name);
  };
  family.read = [&info](OptionReader& in) -> ModelConfig {
    return described::read<Fields>(in, info);
  };
  family.read_training_options = [&info](OptionReader& in) -> ModelConfig {
    return described::read_training_options<Fields>(in, info);
  };
  return family;
}

}  // namespace nunchi
