#include "nunchi/models/decoding_state.h"

#include "nunchi/base/error.h"
#include "nunchi/ops/decode/decode_attention.h"

namespace nunchi {
namespace {

ContextBase& not_recording(ContextBase& context) {
  if (context.tape() != nullptr || context.is_training()) {
    throw Error("a model generates in evaluating mode, without a tape.");
  }
  return context;
}

}  // namespace

DecodingState::DecodingState(ContextBase& context, const nn::DecoderCache::Options& options)
    : cache(not_recording(context), options), context_(context) {}

bool DecodingState::reserve(const nn::Position& position,
                            const SequenceModel::ReplayedSteps& steps) {
  const bool moved = cache.reserve(steps.steps, steps.hypotheses);
  // A table of positions that grew in a replayed step would be filled again each time.
  const Tensor before = positions;
  positions = position.reserve(context_, steps.longest);
  const bool same = !before.defined() || before.same_memory(positions);
  return moved || !same;
}

Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step) {
  return tokens.offsets.defined() ? gather_rows(hidden, step.last, step.last_row) : hidden;
}

}  // namespace nunchi
