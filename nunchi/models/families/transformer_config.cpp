#include "nunchi/models/families/transformer_config.h"

#include "nunchi/models/families/transformer.h"
#include "nunchi/models/family_definitions.h"

namespace nunchi {

std::span<const Preset<TransformerConfig>> TransformerConfig::presets() {
  using Config = TransformerConfig;
  static constexpr std::array kPresets = {
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
  return kPresets;
}

std::string TransformerConfig::one_vocabulary() const {
  return source_features > 0 ? std::string() : EmbeddingTables::one_vocabulary(tied_embeddings);
}

void TransformerConfig::check(const FailOption& fail) const {
  if (decoder_layers < 1 || encoder_layers < 0 || target_vocabulary < 1 || source_features < 0 ||
      (source_features == 0 && source_vocabulary < 1)) {
    fail({"decoder_layers", "source_vocabulary", "target_vocabulary"},
         "is at least one, as every size");
  }
  check_stack(fail, {Sees::all, Sees::past});
  EmbeddingTables::check(tables(), fail);
}

template struct FamilyOptions<TransformerConfig, StackConfig>;

}  // namespace nunchi
