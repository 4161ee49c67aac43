#include "nunchi/models/families/gpt_config.h"

#include "nunchi/models/described_config.h"
#include "nunchi/models/families/gpt.h"

namespace nunchi {
namespace {

constexpr std::array kPresets = {
    Preset<GptConfig>{"gpt2", [](GptConfig&) {}},
    // For character-level models on a small machine.
    Preset<GptConfig>{"small",
                      [](GptConfig& config) {
                        config.layers = 6;
                        config.width = 384;
                        config.heads = 6;
                        config.feed_forward = 1536;
                        config.max_positions = 256;
                        config.dropout = config.attention_dropout = 0.2f;
                      }},
};

constexpr FamilyInfo<GptConfig> kGpt = {
    .name = "gpt", .defaults = [] { return GptConfig(); }, .presets = kPresets};

struct GptFields {
  using Config = GptConfig;
  using Model = Gpt;

  static const FamilyInfo<Config>& info(const Config&) { return kGpt; }
  static void visit_input_sizes(auto& visitor, auto& config) {
    visitor.integer("vocabulary", config.target_vocabulary, 1, kMaxVocabulary);
  }
  static void visit_dropouts(auto& visitor, auto& config) {
    stack_options::visit_dropouts(visitor, config);
  }
  static void visit_options(auto& visitor, auto& config) {
    visitor.integer("layers", config.layers, 1, stack_options::kMaxLayers);
    stack_options::visit_layers(visitor, config);
    visitor.flag("look_ahead_mask", config.look_ahead_mask);
    visitor.flag("tied_embeddings", config.tied_embeddings);
    stack_options::visit_positions_and_dropouts(visitor, config);
  }
};

}  // namespace

GptConfig::GptConfig() {
  width = 768;
  heads = 12;
  feed_forward = 3072;
  norm_placement = nn::NormPlacement::pre;
  activation = ActivationKind::gelu_tanh;
  position = nn::PositionKind::learned;
  max_positions = 1024;
  dropout = attention_dropout = 0.1f;
  scale_embeddings = false;
}

void GptConfig::check(const FailOption& fail) const {
  check_sizes(fail, {{"layers", layers}, {"vocabulary", target_vocabulary}});
  check_stack(fail, {AttentionMask::causal});
}

std::shared_ptr<const FamilyConfig> make_family_config(GptConfig config) {
  return std::make_shared<DescribedConfig<GptFields>>(config);
}

Family gpt_family() { return make_family<GptFields>(kGpt); }

}  // namespace nunchi
