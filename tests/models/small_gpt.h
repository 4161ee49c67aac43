// A small causal language model that several tests look at.
#pragma once

#include "nunchi/models/gpt.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

inline GptConfig small_gpt_config(std::int64_t vocabulary = 37) {
  GptConfig config;
  config.target_vocabulary = vocabulary;
  config.layers = 2;
  config.width = 40;
  config.heads = 2;
  config.feed_forward = 72;
  config.max_positions = 160;
  config.dropout = config.attention_dropout = 0;
  return config;
}

// With what came after GPT-2.
inline GptConfig modern_gpt_config(std::int64_t vocabulary = 37) {
  GptConfig config = small_gpt_config(vocabulary);
  config.norm = NormKind::rms;
  config.activation = ActivationKind::swiglu;
  config.tied_embeddings = false;
  config.position = nn::PositionKind::sinusoidal;
  return config;
}

// Both, and one for each encoding of positions that acts in attention.
inline std::vector<GptConfig> gpt_configs(std::int64_t vocabulary = 37) {
  std::vector<GptConfig> all = {small_gpt_config(vocabulary), modern_gpt_config(vocabulary)};
  for (const nn::PositionKind position :
       {nn::PositionKind::rotary, nn::PositionKind::alibi, nn::PositionKind::relative}) {
    GptConfig config = modern_gpt_config(vocabulary);
    config.position = position;
    config.kv_heads = 1;
    config.head_width = 8;
    config.bias = false;
    config.relative_buckets = 8;
    config.relative_max_distance = 20;
    all.push_back(config);
  }
  return all;
}

inline std::unique_ptr<Gpt> make_gpt(ContextBase& context, const GptConfig& config,
                                     const nn::Parameters::Memory& memory = {}) {
  auto model = std::make_unique<Gpt>(config);
  model->parameters().allocate(context, memory);
  model->parameters().initialize(11);
  // As drawn, weights of 0.02 make every token as likely as any other.
  std::vector<double> values = to_host_f64(model->parameters().weights());
  for (double& value : values) value *= value == 1 ? 1 : 8;
  const Tensor scaled = from_host(context, values, {static_cast<std::int64_t>(values.size())});
  if (model->parameters().weights().dtype() == DType::f64) {
    copy_from_host(std::span<const double>(values), model->parameters().weights());
  } else {
    convert(scaled, model->parameters().weights());
  }
  model->parameters().changed();
  return model;
}

// Logits of every row, [rows, V], without dropout.
inline std::vector<float> logits_of(const Gpt& model, const TokenBatch& texts) {
  return to_host<float>(
      model.logits(model.hidden(texts), texts.rows).value().rows(0, texts.rows.rows));
}

}  // namespace nunchi::testing
