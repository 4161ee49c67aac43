#include "nunchi/models/decoding_state.h"

#include "nunchi/base/error.h"
#include "nunchi/ops/products.h"

namespace nunchi {
namespace {

ContextBase& not_recording(ContextBase& context) {
  if (context.tape() != nullptr) throw Error("a model does not generate while it is recorded.");
  return context;
}

}  // namespace

void check_vocabulary(const TokenBatch& batch, std::int64_t vocabulary, const char* side) {
  if (batch.vocabulary > vocabulary) {
    throw Error(std::string("the batch was made for ") + std::to_string(batch.vocabulary) + " " +
                side + " tokens, but the model knows " + std::to_string(vocabulary) + ".");
  }
}

DecodingState::DecodingState(ContextBase& context, const nn::DecoderCache::Options& options)
    : cache(not_recording(context), options) {}

bool DecodingState::reserve(const nn::Position& position,
                            const SequenceModel::ReplayedSteps& steps) {
  const bool moved = cache.reserve(steps.steps, steps.hypotheses);
  // A table of positions that grew in a replayed step would be filled again each time.
  const Variable before = positions;
  positions = position.embed(steps.longest);
  const bool same =
      !before.defined() || !positions.defined() || before.value().same_memory(positions.value());
  return moved || !same;
}

Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step) {
  return tokens.offsets.defined() ? gather_rows(hidden, step.last, step.last_row) : hidden;
}

Tensor vocabulary_scores(const Tensor& hidden, const Variable& table) {
  // Candidates are told apart by less than bf16 can hold.
  const Tensor scores = Tensor::empty(hidden.context(), summed(hidden.dtype()),
                                      {hidden.size(0), table.value().size(0)});
  multiply(hidden, pack_for_forward(table), scores, {.label = "vocabulary"});
  return scores;
}

}  // namespace nunchi
