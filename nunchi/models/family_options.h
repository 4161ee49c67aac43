// Reading and writing the options of a family, the same for all. A config says its fields once:
//
//   struct GptConfig final : StackConfig {
//     static constexpr const char* kFamily = "gpt";
//     static constexpr std::array<std::string_view, 2> kPresets = {"gpt2", "small"};
//     static GptConfig preset(const std::string& name, std::int64_t vocabulary);
//     static void vocabularies(auto& in, auto& config);  // the numbers that the tokenizers decide
//     static void shape(auto& in, auto& config);         // everything else
//     void check(const std::string& where) const;        // what has to fit together
//   };
//
// The two templates are defined in the config's .cpp, which is the only one to use what is here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nunchi/base/options.h"

namespace nunchi::family_options {

inline constexpr std::int64_t kLargestVocabulary = 16 << 20;

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
};

// config.json.
template <class Config>
Config read(OptionReader& in) {
  Config config;
  take_family<Config>(in);
  Config::vocabularies(in, config);
  Config::shape(in, config);
  in.finish();
  config.check(in.where());
  return config;
}

// `model:` of a training config: the keys of config.json but for the vocabularies, and `preset`,
// whose values the others override.
template <class Config>
Config read_training(OptionReader& in) {
  Config config;
  take_family<Config>(in);
  if (std::string_view preset; in.has("preset")) {
    std::vector<Choice<std::string_view>> presets;
    for (const std::string_view name : Config::kPresets) presets.push_back({name, name});
    in.choice("preset", preset, presets);
    config = Config::preset(std::string(preset), Config().target_vocabulary);
  }
  TokenizersDecide refusing{in};
  Config::vocabularies(refusing, config);
  Config::shape(in, config);
  in.finish();
  config.check_options(in);
  config.check(in.where());
  return config;
}

template <class Config>
std::string to_json(const Config& config) {
  OptionWriter out;
  out.text("family", Config::kFamily);
  Config::vocabularies(out, config);
  Config::shape(out, config);
  return nunchi::to_json(out.tree());
}

template <class Config>
void write_training(const Config& config, OptionWriter& out) {
  out.text("family", Config::kFamily);
  Config::shape(out, config);
}

}  // namespace nunchi::family_options
