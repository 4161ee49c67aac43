// The options of the encoder-decoder Transformer, with the paper's base model as defaults.
#pragma once

#include <string>

#include "nunchi/base/options.h"
#include "nunchi/nn/blocks.h"

namespace nunchi {

// Which tables are one: all three (the paper), the decoder's two, or none.
enum class TiedEmbeddings : std::uint8_t { all, target, none };

struct TransformerConfig {
  std::int64_t source_vocabulary = 37000;
  std::int64_t target_vocabulary = 37000;
  int encoder_layers = 6;
  int decoder_layers = 6;
  std::int64_t width = 512;  // d_model
  int heads = 8;
  std::int64_t feed_forward = 2048;
  nn::NormPlacement norm_placement = nn::NormPlacement::post;
  NormKind norm = NormKind::layer;
  ActivationKind activation = ActivationKind::relu;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  nn::PositionKind position = nn::PositionKind::sinusoidal;
  std::int64_t max_positions = 1024;  // of learned positions
  float dropout = 0.1f;
  float attention_dropout = 0;
  float activation_dropout = 0;

  // The shapes that people know by name: tiny, base, big. Throws UsageError for another.
  static TransformerConfig preset(const std::string& name, std::int64_t vocabulary);

  // config.json's text, both ways. `where` names the file in errors: wrong types, sizes out of
  // range, unknown keys (with the nearest known one).
  std::string to_json() const;
  static TransformerConfig from_json(const std::string& text, const std::string& where);
  // The same from the reader of a whole config.json.
  static TransformerConfig from_options(OptionReader& in);

  // The model of a training config: the keys of config.json and `preset`, whose values the other
  // keys override. The vocabularies come from the tokenizers: not read, not written.
  static TransformerConfig from_training_options(OptionReader& in);
  void write_training_options(OptionWriter& out) const;

  // Throws Error with `where` when sizes do not fit together or are absurd.
  void check(const std::string& where) const;
  nn::BlockConfig block() const;
};

}  // namespace nunchi
