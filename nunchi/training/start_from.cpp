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

constexpr const char* kRunOwner = "the run's";

// tokenizer_difference() for one side; `name` is the tokenizer's name in the clause.
std::string side_difference(const Tokenizer& model, const Tokenizer& run, const char* name) {
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
  return fmt::format("its {} has the same tokens as the run's, but may tokenise text differently",
                     name);
}

void check_same_tokenizers(const std::string& prefix, const std::filesystem::path& folder,
                           const Tokenizers& tokenizers) {
  // Without tokenizers in the folder there is nothing to compare.
  if (!has_tokenizers(folder)) return;
  const std::string difference = tokenizer_difference(load_tokenizers(folder), tokenizers);
  if (difference.empty()) return;
  throw Error(fmt::format(
      "{}: {}. Leave 'tokenizer.source' and 'tokenizer.target' out to use its tokenizers.", prefix,
      difference));
}

}  // namespace

namespace {

std::vector<std::string> labels_of(const ModelConfig& model) {
  const ClassifierConfig* classifier = as_classifier_config(model);
  return classifier != nullptr ? classifier->labels() : std::vector<std::string>();
}

}  // namespace

void check_same_function(const std::string& prefix, const ModelConfig& other,
                         const ModelConfig& model, const std::string& owner) {
  if (const auto found = function_difference(other, model)) {
    throw Error(fmt::format("{}: its '{}' is {}, but {} is {}.", prefix, found->key, found->first,
                            owner, found->second));
  }
}

void check_same_labels(const std::string& prefix, const ModelConfig& other,
                       const ModelConfig& model, const std::string& owner) {
  const std::vector<std::string> other_labels = labels_of(other), labels = labels_of(model);
  if (other_labels == labels) return;
  throw Error(fmt::format("{}: its labels are '{}', but {} are '{}'.", prefix,
                          fmt::join(other_labels, "', '"), owner, fmt::join(labels, "', '")));
}

void check_resumable(const std::filesystem::path& checkpoint, const TrainConfig& config,
                     const ModelConfig& model) {
  const std::string prefix = "'" + checkpoint.string() + "' cannot be resumed with this config";
  for (const ConfigChange& change : config_changes(checkpoint, config)) {
    if (!change.key.starts_with("tokenizer.")) continue;
    throw Error(fmt::format(
        "{}: its '{}' is {}, but the run's is {}, and a run must keep the tokenizers that "
        "it started with.",
        prefix, change.key, change.old_value, change.new_value));
  }
  const ModelConfig other = load_config(checkpoint);
  check_same_function(prefix, other, model, kRunOwner);
  check_same_labels(prefix, other, model, kRunOwner);
}

std::string start_from(const std::filesystem::path& folder, const Tokenizers& tokenizers,
                       Model& model) {
  nn::Parameters& parameters = model.parameters();
  const std::string prefix = "'" + folder.string() + "' cannot be used to start the run";
  const std::unique_ptr<Model> other =
      load_model(folder, parameters.weights().context(), {.dtype = parameters.weights().dtype()});
  check_same_function(prefix, other->config(), model.config(), kRunOwner);
  check_same_tokenizers(prefix, folder, tokenizers);
  const bool same_labels = labels_of(other->config()) == labels_of(model.config());
  std::string random_parameters;
  for (const nn::ParameterEntry& entry : parameters.entries()) {
    const nn::ParameterEntry* found = other->parameters().find(entry.name);
    if (!same_labels && model.belongs_to_task(entry.name)) {
      random_parameters += (random_parameters.empty() ? "" : ", ") + entry.name;
    } else if (found != nullptr && found->shape == entry.shape) {
      convert(other->parameters().weight(*found), parameters.weight(entry));
    } else {
      throw Error(prefix + ": its parameter '" + entry.name +
                  "' is missing or has another shape than in the config's model.");
    }
  }
  parameters.changed();
  if (random_parameters.empty()) return random_parameters;
  return fmt::format("'{}' {}: {} start with random weights", folder.string(),
                     labels_of(other->config()).empty() ? "has no labels" : "has other labels",
                     random_parameters);
}

std::string tokenizer_difference(const Tokenizers& model, const Tokenizers& run) {
  if (model.shared() && run.shared())
    return side_difference(model.source(), run.source(), "tokenizer");
  const std::string source = side_difference(model.source(), run.source(), "source tokenizer");
  if (!source.empty()) return source;
  return side_difference(model.target(), run.target(), "target tokenizer");
}

}  // namespace nunchi
