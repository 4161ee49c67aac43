#include "nunchi/models/transformer_config.h"

#include "nunchi/models/family_options.h"
#include "nunchi/models/transformer.h"

namespace nunchi {

TransformerConfig TransformerConfig::preset(const std::string& name, std::int64_t vocabulary) {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.attention_dropout = config.dropout;
  if (name == "base") return config;
  if (name == "big") {
    config.width = 1024;
    config.heads = 16;
    config.feed_forward = 4096;
    config.dropout = config.attention_dropout = 0.3f;
    return config;
  }
  if (name == "tiny") {
    config.width = 128;
    config.heads = 4;
    config.feed_forward = 256;
    config.encoder_layers = config.decoder_layers = 4;
    config.dropout = config.attention_dropout = 0.2f;
    config.norm_placement = nn::NormPlacement::pre;
    return config;
  }
  throw UsageError("there is no preset '" + name + "'; known are tiny, base and big.");
}

std::unique_ptr<Model> TransformerConfig::make(const Vocabularies& vocabularies) const {
  TransformerConfig config = *this;
  config.source_vocabulary = vocabularies.source;
  config.target_vocabulary = vocabularies.target;
  return std::make_unique<Transformer>(config);
}

std::string TransformerConfig::one_vocabulary() const {
  return EmbeddingTables::one_vocabulary(tied_embeddings);
}

TransformerConfig TransformerConfig::from_options(OptionReader& in) {
  return family_options::read<TransformerConfig>(in);
}

TransformerConfig TransformerConfig::from_training_options(OptionReader& in) {
  return family_options::read_training<TransformerConfig>(in);
}

TransformerConfig TransformerConfig::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

std::string TransformerConfig::to_json() const { return family_options::to_json(*this); }

void TransformerConfig::write_training_options(OptionWriter& out) const {
  family_options::write_training(*this, out);
}

void TransformerConfig::check(const std::string& where) const {
  if (decoder_layers < 1 || encoder_layers < 0 || source_vocabulary < 1 || target_vocabulary < 1) {
    throw Error(where + ": every size is at least one.");
  }
  check_stack(where);
  EmbeddingTables::check(tables(), where);
}

}  // namespace nunchi
