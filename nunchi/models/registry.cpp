// The list of families: a new one adds one line here.
#include <array>

#include "nunchi/base/printable.h"
#include "nunchi/models/families/bert.h"
#include "nunchi/models/families/gpt.h"
#include "nunchi/models/families/rnn.h"
#include "nunchi/models/families/t5.h"
#include "nunchi/models/families/transformer.h"
#include "nunchi/models/family.h"

namespace nunchi {
namespace {

struct Family {
  const char* name;
  std::vector<std::string> (*presets)();
  std::unique_ptr<Model> (*make)(OptionReader& config_json);
  ModelConfig (*read)(OptionReader& training_options);
  ModelConfig (*preset)(const std::string& name);
};

template <class M>
constexpr Family family() {
  using Config = typename M::Config;
  return {.name = Config::kFamily,
          .presets =
              [] {
                std::vector<std::string> names;
                for (const Preset<Config>& known : Config::presets())
                  names.emplace_back(known.name);
                return names;
              },
          .make = [](OptionReader& in) -> std::unique_ptr<Model> {
            return std::make_unique<M>(Config::from_options(in));
          },
          .read = [](OptionReader& in) -> ModelConfig { return Config::from_training_options(in); },
          .preset = [](const std::string& name) -> ModelConfig {
            return Config::preset(name, Config().target_vocabulary);
          }};
}

constexpr std::array kFamilies = {
    family<Transformer>(), family<Gpt>(), family<Bert>(), family<Rnn>(), family<T5>(),
};

std::string all_names() {
  std::string all;
  for (const Family& known : kFamilies) all += (all.empty() ? "" : ", ") + std::string(known.name);
  return all;
}

// The family that the options name.
const Family& named_family(OptionReader& in) {
  if (!in.has("family")) {
    in.fail("family", "is missing; it says which kind of model this is: " + all_names());
  }
  std::string name;
  in.text("family", name);
  for (const Family& known : kFamilies) {
    if (name == known.name) return known;
  }
  in.fail("family", "is one of " + all_names() + ", not '" + printable(name) + "'");
}

}  // namespace

std::unique_ptr<Model> make_model(const std::string& config_json, const std::string& where) {
  const Options options = Options::from_json(config_json, where);
  OptionReader config(options);
  return named_family(config).make(config);
}

ModelConfig read_model_options(OptionReader& in) { return named_family(in).read(in); }

ModelConfig model_preset(const std::string& name) {
  std::string all;
  for (const Family& known : kFamilies) {
    for (const std::string& preset : known.presets()) {
      if (preset == name) return known.preset(name);
      all += (all.empty() ? "" : ", ") + preset;
    }
  }
  throw UsageError("there is no preset '" + printable(name) + "'; known are " + all + ".");
}

}  // namespace nunchi
