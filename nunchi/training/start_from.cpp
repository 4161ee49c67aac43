#include "nunchi/training/start_from.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "nunchi/base/error.h"
#include "nunchi/base/printable.h"
#include "nunchi/models/family.h"
#include "nunchi/models/format/folder.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/config/config_changes.h"

namespace nunchi {
namespace {

constexpr const char* kRun = "the run's";

// See tokenizer_difference; `name` names the tokenizer of this side.
std::string difference(const Tokenizer& model, const Tokenizer& run, const char* name) {
  if (model.fingerprint() == run.fingerprint()) return {};
  if (model.vocabulary() != run.vocabulary()) {
    return fmt::format("its {} has {} tokens, but the run's has {}", name, model.vocabulary(),
                       run.vocabulary());
  }
  for (std::int32_t id = 0; id < model.vocabulary(); ++id) {
    if (model.piece(id) == run.piece(id)) continue;
    return fmt::format("token {} of its {} is '{}', but the run's is '{}'", id, name,
                       printable(model.piece(id)), printable(run.piece(id)));
  }
  return fmt::format("its {} has the run's tokens, but may cut a text into other tokens", name);
}

void check_same_tokenizers(const std::string& cannot, const std::filesystem::path& folder,
                           const Tokenizers& tokenizers) {
  // Without tokenizers in the folder there is nothing to compare.
  if (!has_tokenizers(folder)) return;
  const std::string differs = tokenizer_difference(load_tokenizers(folder), tokenizers);
  if (differs.empty()) return;
  throw Error(fmt::format(
      "{}: {}. Leave 'tokenizer.source' and 'tokenizer.target' out to use its tokenizers.", cannot,
      differs));
}

}  // namespace

namespace {

std::vector<std::string> labels_of(const ModelConfig& model) {
  const ClassifierConfig* classifier = as_classifier_config(model);
  return classifier != nullptr ? classifier->labels() : std::vector<std::string>();
}

}  // namespace

void check_same_function(const std::string& cannot, const ModelConfig& other,
                         const ModelConfig& model, const std::string& whose) {
  if (const auto differs = function_difference(other, model)) {
    throw Error(fmt::format("{}: its '{}' is {}, but {} is {}.", cannot, differs->key,
                            differs->first, whose, differs->second));
  }
}

void check_same_labels(const std::string& cannot, const ModelConfig& other,
                       const ModelConfig& model, const std::string& whose) {
  const std::vector<std::string> its = labels_of(other), ours = labels_of(model);
  if (its == ours) return;
  throw Error(fmt::format("{}: its labels are '{}', but {} are '{}'.", cannot,
                          fmt::join(its, "', '"), whose, fmt::join(ours, "', '")));
}

void check_resumed(const std::filesystem::path& checkpoint, const TrainConfig& config,
                   const ModelConfig& model) {
  const std::string cannot = "'" + checkpoint.string() + "' cannot be resumed with this config";
  for (const ConfigChange& change : config_changes(checkpoint, config)) {
    if (!change.key.starts_with("tokenizer.")) continue;
    throw Error(fmt::format(
        "{}: its '{}' is {}, but the run's is {}, and a run keeps the tokenizers that it began "
        "with.",
        cannot, change.key, change.before, change.now));
  }
  const ModelConfig other = load_config(checkpoint);
  check_same_function(cannot, other, model, kRun);
  check_same_labels(cannot, other, model, kRun);
}

std::string start_from(const std::filesystem::path& folder, const Tokenizers& tokenizers,
                       Model& model) {
  nn::Parameters& parameters = model.parameters();
  const std::string cannot = "'" + folder.string() + "' cannot be used to start the run";
  const std::unique_ptr<Model> other =
      load_model(folder, parameters.weights().context(), {.dtype = parameters.weights().dtype()});
  check_same_function(cannot, other->config(), model.config(), kRun);
  check_same_tokenizers(cannot, folder, tokenizers);
  const bool same_task = labels_of(other->config()) == labels_of(model.config());
  std::string fresh;
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const nn::ParameterEntry* found = other->parameters().find(entry.name);
    if (!same_task && model.belongs_to_task(entry.name)) {
      fresh += (fresh.empty() ? "" : ", ") + entry.name;
    } else if (found != nullptr && found->shape == entry.shape) {
      convert(other->parameters().weight(*found), parameters.weight(entry));
    } else {
      throw Error(cannot + ": its parameter '" + entry.name +
                  "' is missing or of another shape than the config's model has.");
    }
  }
  parameters.changed();
  if (fresh.empty()) return fresh;
  return fmt::format("'{}' {}: {} start at random", folder.string(),
                     labels_of(other->config()).empty() ? "has no labels" : "has other labels",
                     fresh);
}

std::string tokenizer_difference(const Tokenizers& model, const Tokenizers& run) {
  if (model.shared() && run.shared()) return difference(model.source(), run.source(), "tokenizer");
  const std::string source = difference(model.source(), run.source(), "source tokenizer");
  if (!source.empty()) return source;
  return difference(model.target(), run.target(), "target tokenizer");
}

}  // namespace nunchi
