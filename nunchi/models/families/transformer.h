// The encoder-decoder Transformer of "Attention Is All You Need".
//
//   source ids → embedding → encoder layers → memory
//   target ids → embedding → decoder layers (over the memory) → hidden → vocabulary
#pragma once

#include "nunchi/data/batch.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/families/transformer_config.h"
#include "nunchi/models/layer_stack.h"
#include "nunchi/models/model.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/ops/vocabulary_loss.h"

namespace nunchi {

// T5 is one too (models/families/t5.h).
class Transformer : public Model, public TranslationModel {
 public:
  using Config = TransformerConfig;

  explicit Transformer(const TransformerConfig& config);

  std::string family() const override { return Config::kFamily; }
  std::string config_json() const override { return config_.to_json(); }
  const TransformerConfig& config() const override { return config_; }

  // The encoder's output, [S, C].
  Variable encode(const TokenBatch& source) const;
  // What the decoder makes of the target so far, [T, C]; row t has seen tokens 0 to t.
  Variable decode(const TokenBatch& target, const Variable& memory, const Ragged& source) const;
  // Scores of the next token for each row of hidden [T, C]: [T, V].
  Variable logits(const Variable& hidden, const Ragged& rows) const;
  // The summed loss of the labels under teacher forcing.
  VocabularyLoss loss(const PairBatch& batch, const VocabularyLossOptions& options) const override;

  // Generation, token by token; the same layers over a cache.
  std::int64_t source_vocabulary() const override { return config_.source_vocabulary; }
  std::int64_t target_vocabulary() const override { return config_.target_vocabulary; }
  std::int64_t max_length() const override { return config_.longest(); }
  std::unique_ptr<State> start(const TokenBatch& source) const override;
  Tensor step(State& state, const nn::StepTokens& tokens) const override;
  bool reserve(State& state, const ReplayedSteps& steps) const override;
  bool restart(State& state, const TokenBatch& source) const override;
  Tensor next_scores(const Tensor& hidden) const override;
  Variable output_table() const override { return tables_.output; }

 private:
  void remember(const TokenBatch& source, State& state) const;
  // Layer i's columns of the keys and values of all layers.
  Variable memory_of_layer(const Variable& all_kv, std::size_t i) const;

  TransformerConfig config_;
  EmbeddingTables tables_;
  std::unique_ptr<nn::Position> source_position_, target_position_;
  nn::Embedding source_embedding_, target_embedding_;
  LayerStack<nn::EncoderLayer> encoder_layers_;
  nn::Linear memory_kv_;  // keys and values of the memory for all decoder layers, side by side
  LayerStack<nn::DecoderLayer> decoder_layers_;
};

}  // namespace nunchi
