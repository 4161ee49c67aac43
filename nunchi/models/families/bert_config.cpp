#include "nunchi/models/families/bert_config.h"

#include <algorithm>

#include "nunchi/base/printable.h"
#include "nunchi/models/described_config.h"
#include "nunchi/models/families/bert.h"

namespace nunchi {
namespace {

constexpr std::array kPresets = {
    Preset<BertConfig>{"bert-base", [](BertConfig&) {}},
    Preset<BertConfig>{"bert-small",
                       [](BertConfig& config) {
                         config.layers = 6;
                         config.width = 512;
                         config.heads = 8;
                         config.feed_forward = 2048;
                       }},
};

constexpr FamilyInfo<BertConfig> kBert = {
    .name = "bert", .defaults = [] { return BertConfig(); }, .presets = kPresets};

struct BertFields {
  using Config = BertConfig;
  using Model = Bert;

  static const FamilyInfo<Config>& info(const Config&) { return kBert; }
  static void visit_input_sizes(auto& visitor, auto& config) {
    visitor.integer("vocabulary", config.target_vocabulary, 1, kMaxVocabulary);
  }
  static void visit_dropouts(auto& visitor, auto& config) {
    stack_options::visit_dropouts(visitor, config);
  }
  static void visit_options(auto& visitor, auto& config) {
    visitor.integer("layers", config.layers, 1, stack_options::kMaxLayers);
    stack_options::visit_layers(visitor, config);
    stack_options::visit_positions_and_dropouts(visitor, config);
    visitor.texts("labels", config.labels);
  }
};

class BertFamilyConfig final : public DescribedConfig<BertFields>, public ClassifierConfig {
 public:
  using DescribedConfig::DescribedConfig;

  const std::vector<std::string>& labels() const override { return options().labels; }

  ModelConfig with_labels(const std::vector<std::string>& labels) const override {
    BertConfig config = options();
    if (config.labels.empty()) config.labels = labels;
    for (const std::string& label : labels) {
      if (std::ranges::find(config.labels, label) == config.labels.end()) {
        throw Error("the training data have the label '" + printable(label) +
                    "', which is not among 'model.labels'.");
      }
    }
    return config;
  }
};

}  // namespace

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

void BertConfig::reset_training_and_task_options() {
  reset_stack_training_options();
  labels.clear();
}

void BertConfig::check(const FailOption& fail) const {
  check_sizes(fail, {{"layers", layers}, {"vocabulary", target_vocabulary}});
  check_stack(fail, {AttentionMask::none});
  if (max_length() < 3) {
    fail({"max_positions", "position"}, "must be at least 3: a text has <s>, a token and </s>");
  }
  std::vector<std::string> sorted = labels;
  std::ranges::sort(sorted);
  const auto duplicate = std::ranges::adjacent_find(sorted);
  if (duplicate != sorted.end()) {
    fail({"labels"}, "names '" + printable(*duplicate) + "' twice");
  }
}

std::shared_ptr<const FamilyConfig> make_family_config(BertConfig config) {
  return std::make_shared<BertFamilyConfig>(std::move(config));
}

Family bert_family() { return make_family<BertFields>(kBert); }

}  // namespace nunchi
