#include "nunchi/models/families/transformer_config.h"

#include "nunchi/models/described_config.h"
#include "nunchi/models/families/t5.h"
#include "nunchi/models/families/transformer.h"

namespace nunchi {
namespace {

using Config = TransformerConfig;

constexpr std::array kPresets = {
    Preset<Config>{"tiny",
                   [](Config& config) {
                     config.width = 128;
                     config.heads = 4;
                     config.feed_forward = 256;
                     config.encoder_layers = config.decoder_layers = 4;
                     config.dropout = config.attention_dropout = 0.2f;
                     config.norm_placement = nn::NormPlacement::pre;
                   }},
    Preset<Config>{"base", [](Config& config) { config.attention_dropout = config.dropout; }},
    Preset<Config>{"big",
                   [](Config& config) {
                     config.width = 1024;
                     config.heads = 16;
                     config.feed_forward = 4096;
                     config.dropout = config.attention_dropout = 0.3f;
                   }},
};

constexpr FamilyInfo<Config> kTransformer = {
    .name = "transformer", .defaults = [] { return Config(); }, .presets = kPresets};

struct TransformerFields {
  using Config = TransformerConfig;
  using Model = Transformer;

  static const FamilyInfo<Config>& info(const Config& config) {
    return config.variant == TransformerVariant::t5 ? t5_info() : kTransformer;
  }
  static void visit_input_sizes(auto& visitor, auto& config) {
    visitor.integer("source_vocabulary", config.source_vocabulary, 1, kMaxVocabulary);
    visitor.optional_integer("source_features", config.source_feature_width, 1,
                             stack_options::kMaxWidth, std::int64_t{0});
    visitor.integer("target_vocabulary", config.target_vocabulary, 1, kMaxVocabulary);
  }
  static void visit_dropouts(auto& visitor, auto& config) {
    stack_options::visit_dropouts(visitor, config);
  }
  static void visit_options(auto& visitor, auto& config) {
    visitor.integer("encoder_layers", config.encoder_layers, 0, stack_options::kMaxLayers);
    visitor.integer("decoder_layers", config.decoder_layers, 1, stack_options::kMaxLayers);
    stack_options::visit_layers(visitor, config);
    visitor.flag("look_ahead_mask", config.look_ahead_mask);
    visitor.choice("tied_embeddings", config.tied_embeddings, kTiedEmbeddings);
    visitor.flag("scale_output", config.scale_output);
    stack_options::visit_positions_and_dropouts(visitor, config);
  }
};

}  // namespace

void TransformerConfig::check(const FailOption& fail) const {
  check_sizes(fail, {{"decoder_layers", decoder_layers}, {"target_vocabulary", target_vocabulary}});
  check_sizes(fail, {{"encoder_layers", encoder_layers}, {"source_features", source_feature_width}},
              0);
  if (source_feature_width == 0) check_sizes(fail, {{"source_vocabulary", source_vocabulary}});
  check_stack(fail, {AttentionMask::none, AttentionMask::causal});
  EmbeddingTables::check(tables(), fail);
}

std::shared_ptr<const FamilyConfig> make_family_config(TransformerConfig config) {
  return std::make_shared<DescribedConfig<TransformerFields>>(config);
}

Family transformer_family() { return make_family<TransformerFields>(kTransformer); }
Family t5_family() { return make_family<TransformerFields>(t5_info()); }

}  // namespace nunchi
