// Makes a FamilyConfig from a family's plain struct of options. The family's _config.cpp describes
// the fields once:
//
//   struct GptFields {
//     using Config = GptConfig;
//     using Model = Gpt;
//     static const FamilyInfo<Config>& info(const Config& config);
//     // The visitor reads, writes, sets or lists the fields.
//     static void visit_input_sizes(auto& visitor, auto& config);  // set by tokenizers and data
//     static void visit_dropouts(auto& visitor, auto& config);
//     static void visit_options(auto& visitor, auto& config);  // all others, dropouts included
//   };
//
// The struct also has these functions; the first four are described in FamilyConfig:
//
//   objectives(), max_length(), shared_vocabulary_reason(), kernel_requirements()
//   check(fail)           calls `fail` for values that contradict one another
//   why_unused(key)       why an option has no effect; empty if it has one
//   take_defaults(given)  sets defaults that depend on the options given in a training config
//   reset_training_and_task_options()
//                         keeps only the options that decide what given weights compute; see
//                         FamilyConfig::function_options()
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
void write_options(OptionWriter& out, const typename Fields::Config& config) {
  Fields::visit_options(out, config);
  out.leave_out([&](std::string_view key) { return !config.why_unused(key).empty(); });
}

// Refuses the keys that Fields::visit_input_sizes names.
struct RefuseInputSizes {
  OptionReader& in;
  void integer(std::string_view key, auto&, std::int64_t, std::int64_t) {
    in.refuse(key, "the tokenizers decide it.");
  }
  void optional_integer(std::string_view key, auto&, std::int64_t, std::int64_t, std::int64_t) {
    in.refuse(key, "the training data decide it.");
  }
};

// Sets the fields that Fields::visit_input_sizes names.
struct SetInputSizes {
  InputSizes sizes;
  void integer(std::string_view key, auto& field, std::int64_t, std::int64_t) const {
    field = key == "source_vocabulary" ? sizes.source_vocabulary : sizes.target_vocabulary;
  }
  void optional_integer(std::string_view, auto& field, std::int64_t, std::int64_t,
                        std::int64_t) const {
    field = sizes.source_feature_width;
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
    Fields::visit_options(out, any);
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
  Fields::visit_input_sizes(in, config);
  Fields::visit_options(in, config);
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
  RefuseInputSizes refuse{in};
  Fields::visit_input_sizes(refuse, config);
  Fields::visit_options(in, config);
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
  ModelConfig with_input_sizes(const InputSizes& sizes) const override {
    constexpr bool kCanReadFeatures = requires(Config config) { config.source_feature_width; };
    if (!kCanReadFeatures && sizes.source_feature_width > 0) {
      throw Error("a model of the family " + family() + " reads tokens, not features.");
    }
    return changed([&](Config& config) {
      const described::SetInputSizes set{sizes};
      Fields::visit_input_sizes(set, config);
    });
  }

  std::string to_json() const override {
    OptionWriter out;
    out.text("family", family());
    Fields::visit_input_sizes(out, this->options());
    described::write_options<Fields>(out, this->options());
    return nunchi::to_json(out.tree());
  }
  void write_training_options(OptionWriter& out) const override {
    out.text("family", family());
    described::write_options<Fields>(out, this->options());
  }
  OptionValue function_options() const override {
    Config config = this->options();
    config.reset_training_and_task_options();
    OptionWriter out;
    out.text("family", family());
    described::write_options<Fields>(out, config);
    Fields::visit_input_sizes(out, config);
    return out.tree();
  }

  std::vector<ObjectiveKind> objectives() const override { return this->options().objectives(); }
  std::int64_t model_width() const override { return this->options().width; }
  std::int64_t max_length() const override { return this->options().max_length(); }
  std::string shared_vocabulary_reason() const override {
    return this->options().shared_vocabulary_reason();
  }
  FamilyConfig::KernelRequirements kernel_requirements() const override {
    return this->options().kernel_requirements();
  }

  std::vector<FamilyConfig::DropoutOption> dropouts() const override {
    std::vector<FamilyConfig::DropoutOption> found;
    const described::ListDropouts list{found};
    Fields::visit_dropouts(list, this->options());
    return found;
  }
  ModelConfig with_dropout(double rate) const override {
    if (!(rate >= 0 && static_cast<float>(rate) < 1)) {
      throw Error("a dropout must be at least 0 and below 1.");
    }
    return changed([&](Config& config) {
      const described::SetDropouts set{rate};
      Fields::visit_dropouts(set, config);
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
Family make_family(const FamilyInfo<typename Fields::Config>& info) {
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
