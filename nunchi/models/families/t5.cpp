#include "nunchi/models/families/t5.h"

namespace nunchi {
namespace {

using Config = TransformerConfig;

void use_version_1_1(Config& config) {
  config.activation = ActivationKind::geglu;
  config.tied_embeddings = TiedEmbeddings::inputs;
  config.scale_output = false;
}

constexpr std::array kPresets = {
    Preset<Config>{"t5-tiny",
                   [](Config& config) {
                     config.width = 128;
                     config.heads = 4;
                     config.head_width = 32;
                     config.feed_forward = 256;
                     config.encoder_layers = config.decoder_layers = 4;
                   }},
    Preset<Config>{"t5-small", [](Config&) {}},
    Preset<Config>{"t5-base",
                   [](Config& config) {
                     config.width = 768;
                     config.heads = 12;
                     config.feed_forward = 3072;
                     config.encoder_layers = config.decoder_layers = 12;
                   }},
    Preset<Config>{"t5-v1.1-small",
                   [](Config& config) {
                     use_version_1_1(config);
                     config.heads = 6;
                     config.feed_forward = 1024;
                     config.encoder_layers = config.decoder_layers = 8;
                   }},
    Preset<Config>{"t5-v1.1-base",
                   [](Config& config) {
                     use_version_1_1(config);
                     config.width = 768;
                     config.heads = 12;
                     config.encoder_layers = config.decoder_layers = 12;
                   }},
};

}  // namespace

TransformerConfig t5_config() {
  Config config;
  config.variant = TransformerVariant::t5;
  config.source_vocabulary = config.target_vocabulary = 32128;
  config.head_width = 64;
  config.norm_placement = nn::NormPlacement::pre;
  config.norm = NormKind::rms;
  config.norm_epsilon = 1e-6;
  config.position = nn::PositionKind::relative;
  config.bias = config.scale_attention = config.scale_embeddings = false;
  config.scale_output = true;
  config.attention_dropout = config.activation_dropout = config.dropout;
  return config;
}

const FamilyInfo<TransformerConfig>& t5_info() {
  static const FamilyInfo<TransformerConfig> info = {
      .name = "t5", .defaults = t5_config, .presets = kPresets};
  return info;
}

}  // namespace nunchi
