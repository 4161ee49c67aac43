#include "nunchi/models/t5.h"

#include "nunchi/models/family_options.h"

namespace nunchi {

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

T5Config T5Config::preset(const std::string& name, std::int64_t vocabulary) {
  T5Config config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  if (name == "t5-small") return config;
  if (name == "t5-tiny") {
    config.width = 128;
    config.heads = 4;
    config.head_width = 32;
    config.feed_forward = 256;
    config.encoder_layers = config.decoder_layers = 4;
    return config;
  }
  if (name == "t5-base") {
    config.width = 768;
    config.heads = 12;
    config.feed_forward = 3072;
    config.encoder_layers = config.decoder_layers = 12;
    return config;
  }
  config.activation = ActivationKind::geglu;
  config.tied_embeddings = TiedEmbeddings::inputs;
  config.scale_output = false;
  if (name == "t5-v1.1-small") {
    config.heads = 6;
    config.feed_forward = 1024;
    config.encoder_layers = config.decoder_layers = 8;
    return config;
  }
  if (name == "t5-v1.1-base") {
    config.width = 768;
    config.heads = 12;
    config.encoder_layers = config.decoder_layers = 12;
    return config;
  }
  throw UsageError("there is no preset '" + name + "' of T5.");
}

std::unique_ptr<Model> T5Config::make(const Vocabularies& vocabularies) const {
  T5Config config = *this;
  config.source_vocabulary = vocabularies.source;
  config.target_vocabulary = vocabularies.target;
  return std::make_unique<T5>(config);
}

void T5Config::write_training_options(OptionWriter& out) const {
  family_options::write_training(*this, out);
}

std::string T5Config::to_json() const { return family_options::to_json(*this); }

T5Config T5Config::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

T5Config T5Config::from_options(OptionReader& in) { return family_options::read<T5Config>(in); }

T5Config T5Config::from_training_options(OptionReader& in) {
  return family_options::read_training<T5Config>(in);
}

}  // namespace nunchi
