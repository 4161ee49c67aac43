#include "nunchi/models/dropouts.h"

#include <fmt/format.h>

#include <cstdlib>

namespace nunchi {
namespace {

OptionValue options_of(const ModelConfig& model) {
  OptionWriter out;
  model->write_training_options(out);
  return out.tree();
}

bool is_dropout(const OptionValue& option) { return option.key.ends_with("dropout"); }

}  // namespace

std::vector<DropoutOption> dropouts_of(const ModelConfig& model) {
  std::vector<DropoutOption> found;
  const OptionValue tree = options_of(model);
  for (const OptionValue& option : tree.items) {
    if (is_dropout(option)) {
      found.push_back({option.key, std::strtod(option.text.c_str(), nullptr)});
    }
  }
  return found;
}

ModelConfig with_dropout(const ModelConfig& model, double rate) {
  const OptionValue tree = options_of(model);
  Options options = Options::from_json(to_json(tree), "the model's options");
  for (const OptionValue& option : tree.items) {
    if (is_dropout(option)) options.set(fmt::format("{}={}", option.key, rate));
  }
  OptionReader in(options);
  return read_model_options(in);
}

}  // namespace nunchi
