// The recurrent encoder-decoder (Seq2Seq) that the Transformer grew out of.
//
//   source ids → embedding → GRU or LSTM layers → states, and the last state of each layer
//   target ids → embedding → GRU or LSTM layers, beginning with those last states → hidden
//   hidden, looking at the states (attention) or not → vocabulary
//
// Without attention the encoder's last state is the decoder's first and nothing else: whatever the
// source says has to pass through it. With attention (nn/state_attention.h) every target position
// reads all of the encoder's states.
//
// The decoder's layers begin with the states of the encoder's, counted from the top; where the
// encoder has fewer, the lowest serves several.
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

  std::string family() const override { return "rnn"; }
  std::string config_json() const override { return config_.to_json(); }
  const RnnConfig& config() const override { return config_; }

  // The encoder's states and, for each of the decoder's layers, the state that it begins with.
  struct RecurrentMemory : Memory {
    std::vector<RecurrentState> first;  // [B, C]
  };
  RecurrentMemory encode(const Source& source) const;
  // [T, C]; row t has seen the target's tokens 0 to t.
  Variable decode(const TokenBatch& target, const RecurrentMemory& memory) const;
  // Scores of the next token for each row of hidden [T, C]: [T, V].
  Variable logits(const Variable& hidden, const Ragged& rows) const;
  // The summed loss of the labels. In training mode, the decoder reads its own words at some
  // positions if free_running says so (see with_own_words); else the true ones.
  VocabularyLoss loss(const PairBatch& batch, const VocabularyLossOptions& options) const override;

  // The target as the decoder reads it when it runs free (scheduled sampling, Bengio et al. 2015):
  // at each position but the first a draw of (seed, step, sentence, position) decides whether it
  // reads the true word or the likeliest after what it has read so far. Words are chosen step by
  // step without dropout; gradients flow through the rows that were read, not through the choice.
  TokenBatch with_own_words(const PairBatch& batch) const;

  // Generation, token by token.
  ModelInputs inputs() const override {
    return {config_.source_vocabulary, config_.target_vocabulary};
  }
  std::int64_t target_vocabulary() const override { return config_.target_vocabulary; }
  std::unique_ptr<State> start(const Source& source) const override;
  Tensor step(State& state, const nn::StepTokens& tokens) const override;
  bool reserve(State& state, const ReplayedSteps& steps) const override;
  bool restart(State& state, const Source& source) const override;
  Tensor next_scores(const Tensor& hidden) const override;
  Variable output_table() const override { return tables_.output; }

 private:
  void remember(const RecurrentMemory& memory, State& state) const;
  // From what the uppermost layer says, with attention or without, to what the vocabulary reads.
  Variable finished(const Variable& joined, const Ragged& rows) const;

  RnnConfig config_;
  EmbeddingTables tables_;
  nn::Position nowhere_;  // a recurrent layer knows the order without being told positions
  nn::Embedding source_embedding_, target_embedding_;
  nn::RecurrentStack encoder_, decoder_;
  std::optional<nn::StateAttention> attention_;
  Dropout output_dropout_;
  std::uint32_t own_words_place_;
};

}  // namespace nunchi
