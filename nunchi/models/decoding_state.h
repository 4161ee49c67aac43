// What Transformers that generate have in common: the cache of a generation under way.
#pragma once

#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/decoder_cache.h"
#include "nunchi/nn/position/position.h"

namespace nunchi {

struct DecodingState : SequenceModel::State {
  // Throws Error while a tape records or in training mode.
  DecodingState(ContextBase& context, const nn::DecoderCache::Options& options);

  // See SequenceModel::reserve.
  bool reserve(const nn::Position& position, const SequenceModel::ReplayedSteps& steps);

  nn::DecoderCache cache;
  Tensor positions;  // what a replayed step reads stays where it is

 private:
  ContextBase& context_;
};

// The rows of the hypotheses' newest tokens, of all rows of a step: [decode_capacity(H), C].
Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step);

}  // namespace nunchi
