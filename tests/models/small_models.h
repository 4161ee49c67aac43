// Small models and batches that several tests look at.
#pragma once

#include "nunchi/models/transformer.h"
#include "tests/support.h"

namespace nunchi::testing {

inline TransformerConfig small_config(std::int64_t vocabulary = 37) {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.encoder_layers = config.decoder_layers = 2;
  config.width = 40;
  config.heads = 2;
  config.feed_forward = 72;
  config.dropout = 0;
  return config;
}

struct NamedConfig {
  const char* name;
  TransformerConfig config;
};

// Every encoding of positions, with other options that attention has here and there.
inline std::vector<NamedConfig> configs_of_all_positions(std::int64_t vocabulary = 37) {
  using nn::PositionKind;
  const auto with = [&](PositionKind position, nn::NormPlacement placement, int kv_heads) {
    TransformerConfig config = small_config(vocabulary);
    config.position = position;
    config.norm_placement = placement;
    config.kv_heads = kv_heads;
    config.max_positions = 256;
    config.relative_buckets = 8;
    config.relative_max_distance = 20;
    return config;
  };
  const auto post = nn::NormPlacement::post, pre = nn::NormPlacement::pre;
  std::vector<NamedConfig> all = {
      {"sinusoidal", with(PositionKind::sinusoidal, post, 0)},
      {"sinusoidal, one head of keys", with(PositionKind::sinusoidal, pre, 1)},
      {"learned", with(PositionKind::learned, pre, 0)},
      {"none", with(PositionKind::none, pre, 1)},
      {"rotary", with(PositionKind::rotary, post, 0)},
      {"rotary, one head of keys, narrow heads", with(PositionKind::rotary, pre, 1)},
      {"alibi", with(PositionKind::alibi, post, 1)},
      {"relative", with(PositionKind::relative, post, 1)},
      {"clipped", with(PositionKind::relative, pre, 1)},
      {"as in T5", with(PositionKind::relative, pre, 0)}};
  all[5].config.head_width = 4;
  all[8].config.relative_kind = nn::RelativeKind::clipped;
  all[8].config.relative_max_distance = 5;
  TransformerConfig& t5 = all[9].config;
  t5.norm = NormKind::rms;
  t5.activation = ActivationKind::geglu;
  t5.bias = t5.scale_attention = t5.scale_embeddings = false;
  t5.scale_output = true;
  t5.head_width = 12;
  return all;
}

inline std::unique_ptr<Transformer> make_transformer(ContextBase& context,
                                                     const TransformerConfig& config,
                                                     const nn::Parameters::Memory& memory = {}) {
  auto model = std::make_unique<Transformer>(config);
  model->parameters().allocate(context, memory);
  model->parameters().initialize(11);
  return model;
}

// Sentences of these lengths; sentence b's tokens depend on b alone.
inline std::vector<Tokens> sentences_of(const std::vector<std::int32_t>& lengths,
                                        std::int64_t vocabulary, std::uint64_t seed) {
  std::vector<Tokens> sentences;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Tokens tokens;
    for (const double u : random_values<double>(lengths[b], seed * 1000 + b)) {
      tokens.push_back(static_cast<std::int32_t>((u + 1) / 2 * static_cast<double>(vocabulary)));
    }
    sentences.push_back(std::move(tokens));
  }
  return sentences;
}

// Logits of every target row, [rows, V], without dropout.
inline std::vector<float> logits_of(const Transformer& model, const PairBatch& batch) {
  const Variable memory = model.encode(batch.source);
  const Variable hidden = model.decode(batch.target, memory, batch.source.rows);
  return to_host<float>(
      model.logits(hidden, batch.target.rows).value().rows(0, batch.target.rows.rows));
}

}  // namespace nunchi::testing
