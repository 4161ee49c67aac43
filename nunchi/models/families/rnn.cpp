#include "nunchi/models/families/rnn.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/models/decoding_state.h"
#include "nunchi/models/free_running.h"
#include "nunchi/nn/recurrent_cache.h"
#include "nunchi/ops/activation.h"
#include "nunchi/ops/linear.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {
namespace {

std::optional<nn::StateAttention> make_attention(nn::Parameters& parameters,
                                                 const RnnConfig& config) {
  if (config.attention == RnnAttention::none) return std::nullopt;
  const bool additive = config.attention == RnnAttention::additive;
  return nn::StateAttention(
      parameters, "decoder.attention",
      {.score = additive ? nn::StateScore::additive : nn::StateScore::dot, .width = config.width});
}

}  // namespace

Rnn::Rnn(const RnnConfig& config)
    : Model(config),
      config_(checked(config)),
      tables_(parameters_, config.tables()),
      source_embedding_(parameters_, tables_.source,
                        {.width = config.width, .dropout = config.dropout}),
      target_embedding_(parameters_, tables_.target,
                        {.width = config.width, .dropout = config.dropout}),
      encoder_(parameters_, "encoder",
               {.cell = config.cell,
                .layers = config.encoder_layers,
                .width = config.width,
                .bidirectional = config.bidirectional,
                .dropout = config.dropout}),
      decoder_(parameters_, "decoder",
               {.cell = config.cell,
                .layers = config.decoder_layers,
                .width = config.width,
                .dropout = config.dropout}),
      attention_(make_attention(parameters_, config)),
      output_dropout_{config.dropout, parameters_.next_place()},
      free_running_number_(parameters_.next_place()) {}

Rnn::RecurrentMemory Rnn::encode(const Source& any_source) const {
  const TokenBatch& source = token_source(any_source, config_.source_vocabulary);
  const Variable x = source_embedding_(source.ids, source.rows, nowhere_);
  tap(Tap::embedding, {"encoder", -1, ""}, x.value(), source.rows);
  const nn::RecurrentStack::Result read = encoder_(x, source.rows);
  tap(Tap::stack_output, {"encoder", -1, ""}, read.out.value(), source.rows);
  RecurrentMemory memory{{read.out, source.rows}, {}};
  for (int i = 0; i < config_.decoder_layers; ++i) {
    const int same = i + config_.encoder_layers - config_.decoder_layers;
    memory.first.push_back(read.last[static_cast<std::size_t>(std::max(same, 0))]);
  }
  return memory;
}

Variable Rnn::decode(const TokenBatch& target, const RecurrentMemory& memory) const {
  check_vocabulary(target, config_.target_vocabulary, "target");
  const Variable x = target_embedding_(target.ids, target.rows, nowhere_);
  tap(Tap::embedding, {"decoder", -1, ""}, x.value(), target.rows);
  Variable hidden = decoder_(x, target.rows, memory.first).out;
  if (attention_) {
    hidden = (*attention_)(hidden, target.rows, attention_->memory(memory.rows), memory.batch,
                           {"decoder", config_.decoder_layers - 1, "cross_attention"});
  }
  hidden = finished(hidden, target.rows);
  tap(Tap::stack_output, {"decoder", -1, ""}, hidden.value(), target.rows);
  return hidden;
}

Variable Rnn::finished(const Variable& joined, const Ragged& rows) const {
  if (!attention_) return dropped(joined, rows, output_dropout_);
  return activation(joined, rows, ActivationKind::tanh, output_dropout_);
}

Variable Rnn::logits(const Variable& hidden, const Ragged& rows) const {
  const Variable scores = linear(hidden, {.weight = tables_.output});
  tap(Tap::logits, {"decoder", -1, ""}, scores.value(), rows);
  return scores;
}

VocabularyLoss Rnn::loss(const PairBatch& batch, const VocabularyLossOptions& options) const {
  const bool free = config_.free_running > 0 && batch.target.ids.context().is_training();
  const TokenBatch target = free ? free_running_target(batch) : batch.target;
  const Variable hidden = decode(target, encode(batch.source));
  return vocabulary_loss(hidden, tables_.output, batch.labels, batch.target.rows, options);
}

TokenBatch Rnn::free_running_target(const PairBatch& batch) const {
  return nunchi::free_running_target(
      *this, batch, {.share = config_.free_running, .number = free_running_number_});
}

namespace {

// i32: 0, 1, 2, … below `count`.
Tensor numbers_below(std::int64_t count, ContextBase& context) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return from_host(context, all, {count});
}

struct RnnState final : SequenceModel::State {
  // The cache keeps no keys: it counts rows and finds each one's memory.
  RnnState(ContextBase& context, const nn::RecurrentCache::Options& options,
           const nn::CacheLimits& limits)
      : State(context, {}, limits),
        states(context, options, cache.table_rows()),
        numbers(numbers_below(nn::decode_capacity(limits.rows()) + 1, context)) {}

  nn::StateMemory memory;  // [memory rows, C] of all sources; undefined without attention
  nn::RecurrentCache states;
  Tensor numbers;
};

// Several tokens of each hypothesis, as a batch of sentences.
Ragged batch_of(const nn::StepTokens& tokens, std::int64_t capacity) {
  const std::vector<std::int32_t> offsets = to_host<std::int32_t>(tokens.offsets);
  std::vector<std::int32_t> lengths;
  for (std::size_t i = 1; i < offsets.size(); ++i) lengths.push_back(offsets[i] - offsets[i - 1]);
  Ragged batch = make_ragged(tokens.ids.context(), lengths);
  batch.capacity = capacity;  // a decode step's, which is finer
  return batch;
}

}  // namespace

std::unique_ptr<SequenceModel::State> Rnn::make_state(ContextBase& context,
                                                      const nn::CacheLimits& limits) const {
  const nn::RecurrentCache::Options options{
      .layers = static_cast<std::size_t>(config_.decoder_layers),
      .width = config_.width,
      .cells = config_.cell == CellKind::lstm,
      .dtype = parameters_.dtype()};
  auto state = std::make_unique<RnnState>(context, options, limits);
  if (attention_) {
    const Shape shape{limits.memory_rows, config_.width};
    state->memory.values = Variable(Tensor::empty(context, options.dtype, shape));
    state->memory.keys = config_.attention == RnnAttention::dot
                             ? state->memory.values
                             : Variable(Tensor::empty(context, options.dtype, shape));
  }
  return state;
}

void Rnn::add_sources(State& any_state, const Source& source,
                      std::span<const std::int64_t> memory_begin) const {
  auto& state = static_cast<RnnState&>(any_state);
  const RecurrentMemory memory = encode(source);
  std::vector<StateRows> first;
  for (const RecurrentState& layer : memory.first) {
    first.push_back({layer.h.value(), layer.c.defined() ? layer.c.value() : Tensor()});
  }
  state.states.set_first(std::move(first));
  if (!attention_) return;
  const Tensor rows = memory_rows(memory.batch, memory_begin);
  const nn::StateMemory attended = attention_->memory(memory.rows);
  scatter_rows(attended.values.value(), memory.batch, rows, state.memory.values.value());
  if (config_.attention == RnnAttention::dot) return;
  scatter_rows(attended.keys.value(), memory.batch, rows, state.memory.keys.value());
}

Tensor Rnn::step(State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<RnnState&>(any_state);
  const nn::DecodeStep step = state.cache.extend(tokens);
  const nn::RecurrentCache::Step states = state.states.extend(tokens, step);
  const Variable x = target_embedding_(tokens.ids, step.rows, nowhere_);
  Variable hidden;
  if (step.one_each) {
    hidden = decoder_.step(x, step.rows, states.before, states.after);
  } else {
    std::vector<RecurrentState> first;
    for (const StateRows& layer : states.before) {
      const auto real = [&](const Tensor& rows) {
        return rows.defined() ? Variable(rows.rows(0, tokens.hypotheses)) : Variable();
      };
      first.push_back({real(layer.h), real(layer.c)});
    }
    const auto read = decoder_(x, batch_of(tokens, step.rows.capacity), first);
    for (std::size_t i = 0; i < read.last.size(); ++i) {
      scatter_rows(read.last[i].h.value(), step.last, {}, states.after[i].h);
      if (!read.last[i].c.defined()) continue;
      scatter_rows(read.last[i].c.value(), step.last, {}, states.after[i].c);
    }
    hidden = read.out;
  }
  if (attention_) {
    // A prefix may have more tokens than there are hypotheses.
    const bool enough = step.rows.capacity < state.numbers.size(0);
    const Tensor numbers =
        enough ? state.numbers : numbers_below(step.rows.capacity + 1, x.value().context());
    hidden = attention_->step(hidden, step.rows, state.memory, step.memory, numbers);
  }
  return newest_rows(finished(hidden, step.rows).value(), tokens, step);
}

bool Rnn::prepare_replay(State& state) const { return state.cache.take_moved(); }

Tensor Rnn::next_scores(const Tensor& hidden) const {
  return vocabulary_scores(hidden, tables_.output);
}

}  // namespace nunchi
