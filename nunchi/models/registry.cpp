// The list of families: a new one adds one line here.
#include <array>

#include "nunchi/base/error.h"
#include "nunchi/base/options.h"
#include "nunchi/base/printable.h"
#include "nunchi/models/model.h"
#include "nunchi/models/transformer.h"

namespace nunchi {
namespace {

struct Family {
  const char* name;
  std::unique_ptr<Model> (*make)(OptionReader& config);
};

constexpr std::array kFamilies = {
    Family{"transformer",
           [](OptionReader& config) -> std::unique_ptr<Model> {
             return std::make_unique<Transformer>(TransformerConfig::from_options(config));
           }},
};

}  // namespace

std::unique_ptr<Model> make_model(const std::string& config_json, const std::string& where) {
  const Options options = Options::from_json(config_json, where);
  OptionReader config(options);
  if (!config.has("family")) {
    throw Error(where + ": 'family' is missing; it says which kind of model this is.");
  }
  std::string family, all;
  config.text("family", family);
  for (const Family& known : kFamilies) {
    if (family == known.name) return known.make(config);
    all += (all.empty() ? "" : ", ") + std::string(known.name);
  }
  throw Error(where + ": unknown family '" + printable(family) + "'; known are: " + all + ".");
}

}  // namespace nunchi
