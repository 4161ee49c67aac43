// What models that generate have in common.
#pragma once

#include <memory>
#include <span>

#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/position/position.h"

namespace nunchi {

// The state of a Transformer.
class TransformerState : public SequenceModel::State {
 public:
  using State::State;

  // See SequenceModel::prepare_replay.
  bool prepare_replay(const nn::Position& position);

 private:
  Tensor positions_;  // must not move while captured steps read it
};

// The rows of the hypotheses' newest tokens, of all rows of a step: [decode_capacity(H), C].
Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step);

// For each row of a batch the row of the memory that it becomes, i32 [capacity]: sentence b's rows
// begin at begin[b].
Tensor memory_rows(const Ragged& batch, std::span<const std::int64_t> begin);

// A state with a unit for each sentence of the source, all of which begin with one token and get up
// to `positions` tokens in at most `hypotheses` hypotheses.
std::unique_ptr<SequenceModel::State> state_for(const TranslationModel& model, const Source& source,
                                                std::int64_t positions,
                                                std::int64_t hypotheses = 1);

}  // namespace nunchi
