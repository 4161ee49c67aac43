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
