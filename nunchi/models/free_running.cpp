#include "nunchi/models/free_running.h"

#include <algorithm>
#include <numeric>

#include "nunchi/autograd/tape.h"
#include "nunchi/models/decoding_state.h"
#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

// Draws the positions at which the decoder reads its own prediction.
class PredictionSampler {
 public:
  PredictionSampler(const ContextBase& context, const FreeRunning& options)
      : threshold_(static_cast<std::uint64_t>(double{options.probability} * 0x1p32)),
        operation_(options.operation),
        key_(philox::key_of(context.host_random_key())) {}
  bool reads_prediction(std::int32_t sentence, std::int64_t position) const {
    const philox::Words counter = {0, static_cast<std::uint32_t>(position),
                                   static_cast<std::uint32_t>(sentence), operation_};
    return philox::bits(counter, key_)[0] < threshold_;
  }

 private:
  std::uint64_t threshold_;
  std::uint32_t operation_;
  philox::Key key_;
};

}  // namespace

TokenBatch free_running_target(const TranslationModel& model, const PairBatch& batch,
                               const FreeRunning& options) {
  ContextBase& context = batch.target.ids.context();
  const TapePause pause(context);
  const ModeScope scope(context, Mode::evaluating);
  const PredictionSampler sampler(context, options);
  const Ragged& rows = batch.target.rows;
  const auto sentences = static_cast<std::size_t>(rows.sentences);
  std::vector<std::int32_t> order(sentences), begin(sentences), parents(sentences);
  std::iota(order.begin(), order.end(), 0);
  std::iota(parents.begin(), parents.end(), 0);
  std::exclusive_scan(rows.lengths.begin(), rows.lengths.end(), begin.begin(), 0);
  const auto length = [&](std::int32_t b) { return rows.lengths[std::size_t(b)]; };
  // Longest first, so that the unfinished sentences are always the first ones.
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return length(a) > length(b); });
  const std::vector<std::int32_t> sentence_index = to_host<std::int32_t>(rows.sentence_index);
  Tokens ids = to_host<std::int32_t>(batch.target.ids);

  const auto state =
      make_source_state(model, batch.source, std::max<std::int64_t>(1, rows.max_length - 1));
  const Tensor all_parents = from_host(context, parents, {rows.sentences});
  // The first step's hypotheses get rows of the cache's table from next_first_row() on.
  const auto first_row = static_cast<std::int32_t>(state->cache.next_first_row());
  for (std::int32_t& parent : parents) parent += first_row;
  const Tensor first_parents = from_host(context, parents, {rows.sentences});
  const Tensor all_sentences = from_host(context, order, {rows.sentences});
  std::int64_t active = rows.sentences;
  for (std::int64_t t = 0; t + 1 < rows.max_length; ++t) {
    while (length(order[std::size_t(active - 1)]) <= t + 1) --active;
    Tokens newest(static_cast<std::size_t>(nn::decode_capacity(active)), 0);
    for (std::int64_t i = 0; i < active; ++i) {
      newest[std::size_t(i)] = ids[std::size_t(begin[std::size_t(order[std::size_t(i)])] + t)];
    }
    nn::StepTokens tokens{.hypotheses = active,
                          .tokens = active,
                          .ids = from_host(context, newest, {std::ssize(newest)}),
                          .units = all_sentences.flat_slice(0, {active}),
                          .sources = all_sentences.flat_slice(0, {active})};
    if (t > 0) tokens.parents = (t == 1 ? first_parents : all_parents).flat_slice(0, {active});
    const Tensor hidden = model.step(*state, tokens);
    const std::vector<std::int32_t> predictions =
        to_host<std::int32_t>(top_tokens(model.next_scores(hidden).rows(0, active), 1).ids);
    for (std::int64_t i = 0; i < active; ++i) {
      const auto b = static_cast<std::size_t>(order[std::size_t(i)]);
      if (sampler.reads_prediction(sentence_index[b], t + 1)) {
        ids[std::size_t(begin[b] + t + 1)] = predictions[std::size_t(i)];
      }
    }
  }
  return {rows, from_host(context, ids, {rows.capacity}), batch.target.vocabulary};
}

}  // namespace nunchi
