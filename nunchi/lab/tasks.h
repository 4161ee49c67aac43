// Small models and generated tasks that several labs share.
#pragma once

#include "nunchi/lab/experiment.h"
#include "nunchi/models/families/bert_config.h"
#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/families/rnn_config.h"
#include "nunchi/models/families/transformer_config.h"

namespace nunchi::lab {

// Pre-norm without dropout: every example is new, so nothing can be learned by heart.
template <class Config>
Config small_stack(std::int64_t width) {
  Config config;
  config.width = width;
  config.heads = 4;
  config.feed_forward = 2 * width;
  config.norm_placement = nn::NormPlacement::pre;
  config.dropout = config.attention_dropout = 0;
  return config;
}

// An encoder-decoder for `words` words, two layers each.
inline TransformerConfig small_transformer(std::int64_t words, std::int64_t width = 64) {
  auto config = small_stack<TransformerConfig>(width);
  config.source_vocabulary = config.target_vocabulary = kFirstWord + words;
  config.encoder_layers = config.decoder_layers = 2;
  return config;
}

template <class Config>
Config small_text_model(std::int64_t words, std::int64_t width, int layers) {
  auto config = small_stack<Config>(width);
  config.target_vocabulary = kFirstWord + words;
  config.layers = layers;
  config.position = nn::PositionKind::sinusoidal;
  config.scale_embeddings = true;
  return config;
}

inline RnnConfig small_rnn(std::int64_t words, RnnAttention attention, std::int64_t width = 64) {
  RnnConfig config;
  config.source_vocabulary = config.target_vocabulary = kFirstWord + words;
  config.encoder_layers = config.decoder_layers = 1;
  config.width = width;
  config.attention = attention;
  config.dropout = 0;
  return config;
}

// `length` random words out of `words`.
inline Tokens random_words(Draws& draws, std::int64_t length, std::int64_t words) {
  Tokens tokens;
  for (std::int64_t i = 0; i < length; ++i) tokens.push_back(kFirstWord + draws.below(words));
  return tokens;
}

// The target repeats the source, which has `least` to `most` random words.
inline ExampleMaker copying(std::int64_t least, std::int64_t most, std::int64_t words) {
  return [=](Draws& draws) {
    const Tokens tokens = random_words(draws, least + draws.below(most - least + 1), words);
    return Example{.source = tokens, .target = tokens};
  };
}

}  // namespace nunchi::lab
