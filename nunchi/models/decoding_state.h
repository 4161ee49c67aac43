// Shared by the models that generate text.
#pragma once

#include <memory>
#include <span>

#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/position/position.h"

namespace nunchi {

// The decoding state of a Transformer.
class TransformerState : public SequenceModel::State {
 public:
  using State::State;

  // See SequenceModel::prepare_replay.
  bool prepare_replay(const nn::Position& position);

 private:
  Tensor positions_;  // must not move while captured steps read it
};

// Selects the row of each hypothesis' newest token from all rows of a step:
// [decode_capacity(H), C].
Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step);

// The memory row that each row of a batch is copied to, i32 [capacity]. Sentence b's memory starts
// at row begin[b].
Tensor destination_rows(const Ragged& batch, std::span<const std::int64_t> begin);

// A state with one unit per sentence of the source. Each unit starts with one token and has at most
// `hypotheses` hypotheses of at most `positions` tokens.
std::unique_ptr<SequenceModel::State> make_source_state(const TranslationModel& model,
                                                        const Source& source,
                                                        std::int64_t positions,
                                                        std::int64_t hypotheses = 1);

}  // namespace nunchi
