#include "nunchi/models/families/gpt_config.h"

#include "nunchi/models/families/gpt.h"
#include "nunchi/models/family_definitions.h"

namespace nunchi {

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

void GptConfig::vocabularies(auto& in, auto& config) {
  in.integer("vocabulary", config.target_vocabulary, 1, kLargestVocabulary);
}

void GptConfig::shape(auto& in, auto& config) {
  in.integer("layers", config.layers, 1, stack_options::kMostLayers);
  stack_options::layers(in, config);
  in.flag("tied_embeddings", config.tied_embeddings);
  stack_options::positions_and_dropouts(in, config);
}

std::span<const Preset<GptConfig>> GptConfig::presets() {
  static constexpr std::array kPresets = {
      Preset<GptConfig>{"gpt2", [](GptConfig&) {}},
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
  return kPresets;
}

std::string GptConfig::one_vocabulary() const { return "a gpt reads the tokens that it writes"; }

void GptConfig::check(const FailOption& fail) const {
  if (layers < 1 || target_vocabulary < 1) {
    fail({"layers", "vocabulary"}, "is at least one, as every size");
  }
  check_stack(fail, {Sees::past});
}

nn::BlockConfig GptConfig::block() const {
  nn::BlockConfig block = StackConfig::block();
  block.sees = Sees::past;
  return block;
}

template struct FamilyOptions<GptConfig, StackConfig>;

}  // namespace nunchi
