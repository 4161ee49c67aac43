#include "nunchi/models/decoding_state.h"

#include <utility>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

ContextBase& checked_context(ContextBase& context) {
  if (context.tape() != nullptr || context.is_training()) {
    throw Error("a model can generate only in evaluating mode and without a tape.");
  }
  return context;
}

}  // namespace

SequenceModel::State::State(ContextBase& context, const nn::DecoderCache::Options& options,
                            const nn::CacheLimits& limits)
    : cache(checked_context(context), options, limits) {}

bool TransformerState::prepare_replay(const nn::Position& position) {
  const bool cache_moved = cache.take_moved();
  // Reserved here, because a table of positions that grows in a captured step would be filled again
  // by each replay.
  const Tensor previous =
      std::exchange(positions_, position.reserve(cache.context(), cache.limits().positions));
  return cache_moved || (previous.defined() && !previous.same_memory(positions_));
}

Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step) {
  return tokens.offsets.defined() ? gather_rows(hidden, step.last, step.last_row) : hidden;
}

Tensor destination_rows(const Ragged& batch, std::span<const std::int64_t> begin) {
  if (begin.size() != batch.lengths.size()) {
    throw Error(std::to_string(batch.lengths.size()) + " sources were given memory for " +
                std::to_string(begin.size()) + " (internal error).");
  }
  std::vector<std::int32_t> rows;
  for (std::size_t b = 0; b < begin.size(); ++b) {
    for (std::int32_t i = 0; i < batch.lengths[b]; ++i) {
      rows.push_back(static_cast<std::int32_t>(begin[b]) + i);
    }
  }
  rows.resize(static_cast<std::size_t>(batch.capacity), 0);
  return from_host(batch.offsets.context(), rows, {batch.capacity});
}

std::unique_ptr<SequenceModel::State> make_source_state(const TranslationModel& model,
                                                        const Source& source,
                                                        std::int64_t positions,
                                                        std::int64_t hypotheses) {
  const Ragged& rows = source.rows();
  auto state = model.make_state(source.context(), {.units = rows.sentences,
                                                   .beam = hypotheses,
                                                   .positions = positions,
                                                   .memory_rows = rows.rows,
                                                   .source_length = rows.max_length});
  std::vector<std::int64_t> begin;
  for (std::int64_t b = 0; b < rows.sentences; ++b) {
    const std::int64_t length = rows.lengths[static_cast<std::size_t>(b)];
    begin.push_back(state->cache.take_memory(length).value());
    state->cache.admit(
        b, {.max_length = positions, .memory_begin = begin.back(), .memory_length = length});
    state->cache.provide_slots(b, positions);
  }
  state->cache.publish();
  model.add_sources(*state, source, begin);
  return state;
}

}  // namespace nunchi
