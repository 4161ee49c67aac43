#include "nunchi/models/families/t5.h"

#include "nunchi/models/family_definitions.h"

namespace nunchi {
namespace {

void use_version_1_1(T5Config& config) {
  config.activation = ActivationKind::geglu;
  config.tied_embeddings = TiedEmbeddings::inputs;
  config.scale_output = false;
}

}  // namespace

T5Config::T5Config() {
  source_vocabulary = target_vocabulary = 32128;
  head_width = 64;
  norm_placement = nn::NormPlacement::pre;
  norm = NormKind::rms;
  norm_epsilon = 1e-6;
  position = nn::PositionKind::relative;
  bias = scale_attention = scale_embeddings = false;
  scale_output = true;
  attention_dropout = activation_dropout = dropout;
}

std::span<const Preset<T5Config>> T5Config::presets() {
  static constexpr std::array kPresets = {
      Preset<T5Config>{"t5-tiny",
                       [](T5Config& config) {
                         config.width = 128;
                         config.heads = 4;
                         config.head_width = 32;
                         config.feed_forward = 256;
                         config.encoder_layers = config.decoder_layers = 4;
                       }},
      Preset<T5Config>{"t5-small", [](T5Config&) {}},
      Preset<T5Config>{"t5-base",
                       [](T5Config& config) {
                         config.width = 768;
                         config.heads = 12;
                         config.feed_forward = 3072;
                         config.encoder_layers = config.decoder_layers = 12;
                       }},
      Preset<T5Config>{"t5-v1.1-small",
                       [](T5Config& config) {
                         use_version_1_1(config);
                         config.heads = 6;
                         config.feed_forward = 1024;
                         config.encoder_layers = config.decoder_layers = 8;
                       }},
      Preset<T5Config>{"t5-v1.1-base",
                       [](T5Config& config) {
                         use_version_1_1(config);
                         config.width = 768;
                         config.heads = 12;
                         config.encoder_layers = config.decoder_layers = 12;
                       }},
  };
  return kPresets;
}

template struct FamilyOptions<T5Config, TransformerConfig>;

}  // namespace nunchi
