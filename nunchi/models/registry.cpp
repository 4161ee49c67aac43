// The list of families: a new one adds one line here.
#include <array>
#include <functional>

#include "nunchi/base/printable.h"
#include "nunchi/models/json_object.h"
#include "nunchi/models/model.h"
#include "nunchi/models/transformer.h"

namespace nunchi {
namespace {

struct Family {
  const char* name;
  std::unique_ptr<Model> (*make)(const std::string& config_json, const std::string& where);
};

constexpr std::array kFamilies = {
    Family{"transformer",
           [](const std::string& json, const std::string& where) -> std::unique_ptr<Model> {
             return std::make_unique<Transformer>(TransformerConfig::from_json(json, where));
           }},
};

}  // namespace

std::unique_ptr<Model> make_model(const std::string& config_json, const std::string& where) {
  const nlohmann::json object = parse_json_object(config_json, where);
  const auto family = object.find("family");
  if (family == object.end() || !family->is_string()) {
    throw Error(where + ": 'family' is missing; it says which kind of model this is.");
  }
  std::string all;
  for (const Family& known : kFamilies) {
    if (*family == known.name) return known.make(config_json, where);
    all += (all.empty() ? "" : ", ") + std::string(known.name);
  }
  throw Error(where + ": unknown family '" + printable(family->get<std::string>()) +
              "'; known are: " + all + ".");
}

}  // namespace nunchi
