// The encoder-decoder Transformer of "Attention Is All You Need".
//
//   source → encoder → memory
//   target ids, memory → decoder stack → hidden → vocabulary
#pragma once

#include <optional>

#include "nunchi/data/batch.h"
#include "nunchi/models/decoder_stack.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/encoder.h"
#include "nunchi/models/families/transformer_config.h"
#include "nunchi/models/model.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/ops/vocabulary_loss.h"

namespace nunchi {

// T5 is this model with different defaults (models/families/t5.h).
class Transformer final : public Model, public TranslationModel {
 public:
  using Config = TransformerConfig;

  explicit Transformer(const TransformerConfig& config);

  Memory encode(const Source& source) const { return encoder_(source); }
  // [T, C]; row t depends on the target's tokens 0 to t and its sentence's memory.
  Variable decode(const TokenBatch& target, const Memory& memory) const {
    return decoder_(target, memory);
  }
  // Scores of the next token for each row of hidden [T, C]: [T, V].
  Variable logits(const Variable& hidden, const Ragged& rows) const;
  // The summed loss of the labels under teacher forcing.
  VocabularyLoss loss(const PairBatch& batch, const VocabularyLossOptions& options) const override;

  // Generation, token by token: the same layers with a cache.
  InputSizes input_sizes() const override { return config_.input_sizes(); }
  std::int64_t target_vocabulary() const override { return config_.target_vocabulary; }
  std::int64_t max_length() const override { return config_.max_length(); }
  std::unique_ptr<State> make_state(ContextBase& context,
                                    const nn::CacheLimits& limits) const override {
    return decoder_.make_state(context, limits);
  }
  void add_sources(State& state, const Source& source,
                   std::span<const std::int64_t> memory_begin) const override {
    decoder_.add_memory(state, encode(source), memory_begin);
  }
  Tensor step(State& state, const nn::StepTokens& tokens) const override {
    return decoder_.step(state, tokens);
  }
  bool prepare_replay(State& state) const override { return decoder_.prepare_replay(state); }
  Tensor next_scores(const Tensor& hidden) const override;
  Variable output_table() const override { return tables_.output; }

  const nn::Position* position(std::string_view stack) const override {
    return (stack == "encoder" ? source_position_ : target_position_).get();
  }

 private:
  TransformerConfig config_;
  EmbeddingTables tables_;
  std::unique_ptr<nn::Position> source_position_, target_position_;
  std::optional<nn::Embedding> source_embedding_;                 // if the source has tokens
  std::optional<nn::FeatureEmbedding> source_feature_embedding_;  // if the source has features
  nn::Embedding target_embedding_;
  Encoder encoder_;
  DecoderStack decoder_;
};

}  // namespace nunchi
