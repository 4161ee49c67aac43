#include "nunchi/models/families/rnn.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nunchi/base/error.h"
#include "nunchi/models/decoding_state.h"
#include "nunchi/models/free_running.h"
#include "nunchi/nn/layer_input.h"
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
  return nn::StateAttention(parameters, "decoder.attention",
                            {.score = additive ? nn::StateScore::additive : nn::StateScore::dot,
                             .width = config.width,
                             .layer = config.decoder_layers - 1});
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
      output_dropout_{config.dropout, parameters_.next_operation_id()},
      free_running_operation_(parameters_.next_operation_id()) {}

Rnn::RecurrentMemory Rnn::encode(const Source& any_source) const {
  const TokenBatch& source = token_source(any_source, config_.source_vocabulary);
  const Variable x = source_embedding_(source.ids, source.rows, no_position_, "encoder");
  write_to_trace(Tap::embedding, {"encoder", -1, ""}, x.value(), source.rows);
  const nn::RecurrentStack::Result encoded = encoder_(x, source.rows);
  write_to_trace(Tap::stack_output, {"encoder", -1, ""}, encoded.out.value(), source.rows);
  RecurrentMemory memory{{encoded.out, source.rows}, {}};
  for (int i = 0; i < config_.decoder_layers; ++i) {
    const int encoder_layer = std::max(i + config_.encoder_layers - config_.decoder_layers, 0);
    memory.initial.push_back(encoded.last[static_cast<std::size_t>(encoder_layer)]);
  }
  return memory;
}

Variable Rnn::decode(const TokenBatch& target, const RecurrentMemory& memory) const {
  check_vocabulary(target, config_.target_vocabulary, "target");
  const Variable x = target_embedding_(target.ids, target.rows, no_position_, "decoder");
  write_to_trace(Tap::embedding, {"decoder", -1, ""}, x.value(), target.rows);
  Variable hidden = decoder_(x, target.rows, memory.initial).out;
  if (attention_) {
    hidden = (*attention_)(hidden, target.rows, attention_->memory(memory.rows), memory.batch);
  }
  hidden = vocabulary_input(hidden, target.rows);
  write_to_trace(Tap::stack_output, {"decoder", -1, ""}, hidden.value(), target.rows);
  return hidden;
}

Variable Rnn::vocabulary_input(const Variable& top, const Ragged& rows) const {
  if (!attention_) return with_dropout(top, rows, output_dropout_);
  return activation(top, rows, ActivationKind::tanh, output_dropout_);
}

Variable Rnn::logits(const Variable& hidden, const Ragged& rows) const {
  const Variable scores = linear(hidden, {.weight = tables_.output});
  write_to_trace(Tap::logits, {"decoder", -1, ""}, scores.value(), rows);
  return scores;
}

VocabularyLoss Rnn::loss(const PairBatch& batch, const VocabularyLossOptions& options) const {
  const bool free_running = config_.free_running > 0 && batch.target.ids.context().is_training();
  const TokenBatch target = free_running ? free_running_target(batch) : batch.target;
  const Variable hidden = decode(target, encode(batch.source));
  return vocabulary_loss(hidden, tables_.output, batch.labels, batch.target.rows, options);
}

TokenBatch Rnn::free_running_target(const PairBatch& batch) const {
  return nunchi::free_running_target(
      *this, batch, {.probability = config_.free_running, .operation = free_running_operation_});
}

namespace {

// i32 [count]: 0, 1, …, count - 1.
Tensor numbers_below(std::int64_t count, ContextBase& context) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return from_host(context, numbers, {count});
}

struct RnnState final : SequenceModel::State {
  // The cache stores no keys and values: it tracks the rows and the memory of each.
  RnnState(ContextBase& context, const nn::RecurrentCache::Options& options,
           const nn::CacheLimits& limits)
      : State(context, {}, limits),
        states(context, options, cache.table_rows()),
        numbers(numbers_below(nn::decode_capacity(limits.rows()) + 1, context)) {}

  nn::StateMemory memory;  // of all sources, [memory rows, C]; undefined without attention
  nn::RecurrentCache states;
  Tensor numbers;  // 0, 1, 2, …
};

// The tokens of a step with several tokens per hypothesis, as a batch with one sentence per
// hypothesis.
Ragged batch_of(const nn::StepTokens& tokens, std::int64_t capacity) {
  const std::vector<std::int32_t> offsets = to_host<std::int32_t>(tokens.offsets);
  std::vector<std::int32_t> lengths;
  for (std::size_t i = 1; i < offsets.size(); ++i) lengths.push_back(offsets[i] - offsets[i - 1]);
  Ragged batch = make_ragged(tokens.ids.context(), lengths);
  batch.capacity = capacity;  // the decode step's capacity, not row_capacity()
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
  std::vector<StateRows> initial;
  for (const RecurrentState& layer : memory.initial) {
    initial.push_back({layer.h.value(), layer.c.defined() ? layer.c.value() : Tensor()});
  }
  state.states.set_initial_states(std::move(initial));
  if (!attention_) return;
  const Tensor destination = destination_rows(memory.batch, memory_begin);
  const nn::StateMemory attended = attention_->memory(memory.rows);
  scatter_rows(attended.values.value(), memory.batch, destination, state.memory.values.value());
  if (config_.attention == RnnAttention::dot) return;
  scatter_rows(attended.keys.value(), memory.batch, destination, state.memory.keys.value());
}

Tensor Rnn::step(State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<RnnState&>(any_state);
  const nn::TraceStep traced(tokens);
  const nn::DecodeStep step = state.cache.extend(tokens);
  const nn::RecurrentCache::Step states = state.states.extend(tokens, step);
  const Variable x = target_embedding_(tokens.ids, step.rows, no_position_, "decoder");
  write_to_trace(Tap::embedding, {"decoder", -1, ""}, x.value(), step.rows);
  Variable hidden;
  if (step.one_each) {
    hidden = decoder_.step(x, step.rows, states.before, states.after);
  } else {
    std::vector<RecurrentState> initial;
    for (const StateRows& layer : states.before) {
      const auto real = [&](const Tensor& rows) {
        return rows.defined() ? Variable(rows.rows(0, tokens.hypotheses)) : Variable();
      };
      initial.push_back({real(layer.h), real(layer.c)});
    }
    const auto decoded = decoder_(x, batch_of(tokens, step.rows.capacity), initial);
    for (std::size_t i = 0; i < decoded.last.size(); ++i) {
      scatter_rows(decoded.last[i].h.value(), step.last, {}, states.after[i].h);
      if (!decoded.last[i].c.defined()) continue;
      scatter_rows(decoded.last[i].c.value(), step.last, {}, states.after[i].c);
    }
    hidden = decoded.out;
  }
  if (attention_) {
    // Prefixes may have more tokens in total than state.numbers has elements.
    const bool long_enough = step.rows.capacity < state.numbers.size(0);
    const Tensor numbers =
        long_enough ? state.numbers : numbers_below(step.rows.capacity + 1, x.value().context());
    hidden = attention_->step(hidden, step.rows, state.memory, step.memory, numbers);
  }
  hidden = vocabulary_input(hidden, step.rows);
  write_to_trace(Tap::stack_output, {"decoder", -1, ""}, hidden.value(), step.rows);
  return newest_rows(hidden.value(), tokens, step);
}

bool Rnn::prepare_replay(State& state) const { return state.cache.take_moved(); }

Tensor Rnn::next_scores(const Tensor& hidden) const {
  return vocabulary_scores(hidden, tables_.output);
}

}  // namespace nunchi
