#include "nunchi/models/gpt_config.h"

#include "nunchi/models/family_options.h"
#include "nunchi/models/gpt.h"

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
  in.integer("vocabulary", config.target_vocabulary, 1, family_options::kLargestVocabulary);
}

void GptConfig::shape(auto& in, auto& config) {
  in.integer("layers", config.layers, 1, stack_options::kMostLayers);
  stack_options::layers(in, config);
  in.flag("tied_embeddings", config.tied_embeddings);
  stack_options::positions_and_dropouts(in, config);
}

GptConfig GptConfig::preset(const std::string& name, std::int64_t vocabulary) {
  GptConfig config;
  config.target_vocabulary = vocabulary;
  if (name == "gpt2") return config;
  if (name == "small") {
    config.layers = 6;
    config.width = 384;
    config.heads = 6;
    config.feed_forward = 1536;
    config.max_positions = 256;
    config.dropout = config.attention_dropout = 0.2f;
    return config;
  }
  throw UsageError("there is no preset '" + name + "'; known are gpt2 and small.");
}

std::unique_ptr<Model> GptConfig::make(const Vocabularies& vocabularies) const {
  GptConfig config = *this;
  config.target_vocabulary = vocabularies.target;
  return std::make_unique<Gpt>(config);
}

std::string GptConfig::one_vocabulary() const { return "a gpt reads the tokens that it writes"; }

GptConfig GptConfig::from_options(OptionReader& in) { return family_options::read<GptConfig>(in); }

GptConfig GptConfig::from_training_options(OptionReader& in) {
  return family_options::read_training<GptConfig>(in);
}

GptConfig GptConfig::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

std::string GptConfig::to_json() const { return family_options::to_json(*this); }

void GptConfig::write_training_options(OptionWriter& out) const {
  family_options::write_training(*this, out);
}

void GptConfig::check(const std::string& where) const {
  if (layers < 1 || target_vocabulary < 1) throw Error(where + ": every size is at least one.");
  check_stack(where);
}

nn::BlockConfig GptConfig::block() const {
  nn::BlockConfig block = StackConfig::block();
  block.causal = true;
  return block;
}

}  // namespace nunchi
