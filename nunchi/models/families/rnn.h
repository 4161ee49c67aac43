// The recurrent encoder-decoder (Seq2Seq), the Transformer's predecessor.
//
//   source ids → embedding → GRU or LSTM layers → states, and the last state of each layer
//   target ids → embedding → GRU or LSTM layers, starting from those last states → hidden
//   hidden, with or without attention to the states → vocabulary
//
// Without attention the decoder knows the source only through the encoder's last states, which are
// its initial states. With attention (nn/state_attention.h) every target position reads all of the
// encoder's states.
//
// Encoder and decoder layers are paired from the top. If the encoder has fewer layers, its lowest
// layer initialises several decoder layers.
#pragma once

#include <optional>
#include <vector>

#include "nunchi/data/batch.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/families/rnn_config.h"
#include "nunchi/models/memory.h"
#include "nunchi/models/model.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/nn/recurrent.h"
#include "nunchi/nn/state_attention.h"
#include "nunchi/ops/vocabulary_loss.h"

namespace nunchi {

class Rnn final : public Model, public TranslationModel {
 public:
  using Config = RnnConfig;
  explicit Rnn(const RnnConfig& config);

  // The encoder's states and the initial state of each decoder layer.
  struct RecurrentMemory : Memory {
    std::vector<RecurrentState> initial;  // [B, C] each
  };
  RecurrentMemory encode(const Source& source) const;
  // [T, C]; row t depends on the target's tokens 0 to t.
  Variable decode(const TokenBatch& target, const RecurrentMemory& memory) const;
  // Scores of the next token for each row of hidden [T, C]: [T, V].
  Variable logits(const Variable& hidden, const Ragged& rows) const;
  // The summed loss of the labels. In training mode, with the option free_running, the decoder
  // reads its own predictions at some positions (models/free_running.h).
  VocabularyLoss loss(const PairBatch& batch, const VocabularyLossOptions& options) const override;
  TokenBatch free_running_target(const PairBatch& batch) const;

  // Generation, token by token.
  InputSizes input_sizes() const override {
    return {config_.source_vocabulary, config_.target_vocabulary};
  }
  std::int64_t target_vocabulary() const override { return config_.target_vocabulary; }
  std::unique_ptr<State> make_state(ContextBase& context,
                                    const nn::CacheLimits& limits) const override;
  void add_sources(State& state, const Source& source,
                   std::span<const std::int64_t> memory_begin) const override;
  Tensor step(State& state, const nn::StepTokens& tokens) const override;
  bool prepare_replay(State& state) const override;
  Tensor next_scores(const Tensor& hidden) const override;
  Variable output_table() const override { return tables_.output; }

 private:
  // The input of the vocabulary projection, from the output of the top layer or of the attention.
  Variable vocabulary_input(const Variable& top, const Ragged& rows) const;

  RnnConfig config_;
  EmbeddingTables tables_;
  nn::Position no_position_;  // adds nothing: recurrent layers read their inputs in order
  nn::Embedding source_embedding_, target_embedding_;
  nn::RecurrentStack encoder_, decoder_;
  std::optional<nn::StateAttention> attention_;
  Dropout output_dropout_;
  std::uint32_t free_running_operation_;
};

}  // namespace nunchi
