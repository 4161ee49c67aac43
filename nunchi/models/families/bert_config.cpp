#include "nunchi/models/families/bert_config.h"

#include <algorithm>

#include "nunchi/base/printable.h"
#include "nunchi/models/families/bert.h"
#include "nunchi/models/family_definitions.h"

namespace nunchi {

BertConfig::BertConfig() {
  width = 768;
  heads = 12;
  feed_forward = 3072;
  activation = ActivationKind::gelu;
  position = nn::PositionKind::learned;
  max_positions = 512;
  dropout = attention_dropout = 0.1f;
  scale_embeddings = false;
}

void BertConfig::vocabularies(auto& in, auto& config) {
  in.integer("vocabulary", config.target_vocabulary, 1, kLargestVocabulary);
}

void BertConfig::shape(auto& in, auto& config) {
  in.integer("layers", config.layers, 1, stack_options::kMostLayers);
  stack_options::layers(in, config);
  stack_options::positions_and_dropouts(in, config);
  in.texts("labels", config.labels);
}

std::span<const Preset<BertConfig>> BertConfig::presets() {
  static constexpr std::array kPresets = {
      Preset<BertConfig>{"bert-base", [](BertConfig&) {}},
      Preset<BertConfig>{"bert-small",
                         [](BertConfig& config) {
                           config.layers = 6;
                           config.width = 512;
                           config.heads = 8;
                           config.feed_forward = 2048;
                         }},
  };
  return kPresets;
}

std::string BertConfig::one_vocabulary() const {
  return "a bert fills in the tokens that it reads";
}

ModelConfig BertConfig::with_labels(const std::vector<std::string>& labels) const {
  BertConfig config = *this;
  if (config.labels.empty()) config.labels = labels;
  for (const std::string& label : labels) {
    if (std::ranges::find(config.labels, label) == config.labels.end()) {
      throw Error("the training data have the label '" + printable(label) +
                  "', which is not among 'model.labels'.");
    }
  }
  return config;
}

void BertConfig::keep_function() {
  StackConfig::keep_function();
  labels.clear();
}

void BertConfig::check(const FailOption& fail) const {
  if (layers < 1 || target_vocabulary < 1) {
    fail({"layers", "vocabulary"}, "is at least one, as every size");
  }
  check_stack(fail, {Sees::all});
  if (longest() < 3) {
    fail({"max_positions", "position"}, "is at least 3: a text has <s>, a token and </s>");
  }
  std::vector<std::string> sorted = labels;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    fail({"labels"}, "names '" + printable(*twice) + "' twice");
  }
}

template struct FamilyOptions<BertConfig, StackConfig>;

}  // namespace nunchi
