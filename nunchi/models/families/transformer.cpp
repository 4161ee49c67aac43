#include "nunchi/models/families/transformer.h"

#include <cmath>

#include "nunchi/ops/linear.h"

namespace nunchi {
namespace {

std::optional<nn::Embedding> token_embedding(nn::Parameters& parameters,
                                             const EmbeddingTables& tables,
                                             const TransformerConfig& config) {
  if (config.source_feature_width > 0) return std::nullopt;
  return nn::Embedding(parameters, tables.source, config.embedding_options());
}

std::optional<nn::FeatureEmbedding> feature_embedding(nn::Parameters& parameters,
                                                      const TransformerConfig& config) {
  if (config.source_feature_width == 0) return std::nullopt;
  return nn::FeatureEmbedding(parameters, "encoder.features",
                              {.features = config.source_feature_width,
                               .width = config.width,
                               .bias = config.bias,
                               .dropout = config.dropout});
}

}  // namespace

// With V tokens, width C, feed-forward F and L layers in each stack, the paper's model has
//   V·C                                       the one embedding table
//   L·(4·C² + 4·C + 2·C·F + F + C + 4·C)      encoder: Q, K, V, O; feed-forward; two norms
//   L·(8·C² + 8·C + 2·C·F + F + C + 6·C)      decoder: two attentions; feed-forward; three norms
// parameters: base with V = 37,000 has 18,944,000 + 18,914,304 + 25,224,192 = 63,082,496.
Transformer::Transformer(const TransformerConfig& config)
    : Model(config),
      config_(checked(config)),
      tables_(parameters_, config.tables()),
      source_position_(nn::make_position(parameters_, "encoder.position",
                                         config.position_options(nn::AttentionMask::none))),
      target_position_(nn::make_position(parameters_, "decoder.position",
                                         config.position_options(nn::AttentionMask::causal))),
      source_embedding_(token_embedding(parameters_, tables_, config)),
      source_feature_embedding_(feature_embedding(parameters_, config)),
      target_embedding_(parameters_, tables_.target, config.embedding_options()),
      encoder_(
          parameters_,
          {.token_embedding = source_embedding_ ? &*source_embedding_ : nullptr,
           .feature_embedding = source_feature_embedding_ ? &*source_feature_embedding_ : nullptr,
           .position = *source_position_,
           .input_sizes = config.input_sizes()},
          {.name = "encoder", .layers = config.encoder_layers, .block = config.block()}),
      decoder_(parameters_, {target_embedding_, *target_position_, config.target_vocabulary},
               {.name = "decoder",
                .layers = config.decoder_layers,
                .block = config.block(),
                .output_scale =
                    config.scale_output ? 1 / std::sqrt(static_cast<double>(config.width)) : 1}) {}

Variable Transformer::logits(const Variable& hidden, const Ragged& rows) const {
  const Variable scores = linear(hidden, {.weight = tables_.output});
  write_to_trace(Tap::logits, {"decoder", -1, ""}, scores.value(), rows);
  return scores;
}

VocabularyLoss Transformer::loss(const PairBatch& batch,
                                 const VocabularyLossOptions& options) const {
  const Variable hidden = decode(batch.target, encode(batch.source));
  return vocabulary_loss(hidden, tables_.output, batch.labels, batch.target.rows, options);
}

Tensor Transformer::next_scores(const Tensor& hidden) const {
  return vocabulary_scores(hidden, tables_.output);
}

}  // namespace nunchi
