#include "nunchi/models/decoder_stack.h"

#include "nunchi/models/decoding_state.h"
#include "nunchi/models/embedding_tables.h"

namespace nunchi {
namespace {

struct MemoryState final : TransformerState {
  using TransformerState::TransformerState;
  // Keys and values of each layer, computed once for all steps: [memory rows, key_value_width],
  // with the padding of nn::key_value_rows.
  std::vector<Variable> memory_kv;
};

}  // namespace

DecoderStack::DecoderStack(nn::Parameters& parameters, const DecoderModules& modules,
                           const LayerStackOptions& options)
    : modules_(modules),
      key_value_width_(options.block.key_value_width()),
      memory_projection_(parameters, std::string(options.name) + ".memory_kv",
                         {.inputs = options.block.width,
                          .outputs = key_value_width_ * options.layers,
                          .stacked = std::int64_t{2} * options.layers,
                          .bias = options.block.bias}),
      layers_(parameters, options, modules.position) {}

Variable DecoderStack::layer_memory_kv(const Variable& all_kv, std::size_t i) const {
  return all_kv.columns(static_cast<std::int64_t>(i) * key_value_width_, key_value_width_);
}

Variable DecoderStack::operator()(const TokenBatch& target, const Memory& memory) const {
  check_vocabulary(target, modules_.vocabulary, "target");
  const Variable all_kv = memory_projection_(memory.rows);
  std::vector<Variable> memory_kv;
  for (std::size_t i = 0; i < layers_.size(); ++i) memory_kv.push_back(layer_memory_kv(all_kv, i));
  return layers_(modules_.embedding(target.ids, target.rows, modules_.position, "decoder"),
                 {.rows = target.rows, .memory_kv = memory_kv, .memory = &memory.batch});
}

std::unique_ptr<SequenceModel::State> DecoderStack::make_state(
    ContextBase& context, const nn::CacheLimits& limits) const {
  const nn::DecoderCache::Options options{
      .layers = static_cast<int>(layers_.size()),
      .width = key_value_width_,
      .dtype = memory_projection_.parameters().weight.value().dtype()};
  auto state = std::make_unique<MemoryState>(context, options, limits);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    state->memory_kv.emplace_back(
        nn::key_value_rows(context, options.dtype, limits.memory_rows, options.width));
  }
  return state;
}

void DecoderStack::add_memory(SequenceModel::State& any_state, const Memory& memory,
                              std::span<const std::int64_t> memory_begin) const {
  auto& state = static_cast<MemoryState&>(any_state);
  const Tensor destination = destination_rows(memory.batch, memory_begin);
  const Variable all_kv = memory_projection_(memory.rows);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    scatter_rows(layer_memory_kv(all_kv, i).value(), memory.batch, destination,
                 state.memory_kv[i].value().columns(0, key_value_width_));
  }
}

Tensor DecoderStack::step(SequenceModel::State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<MemoryState&>(any_state);
  const nn::TraceStep traced(tokens);
  const auto [step, embedded] = state.cache.extend(tokens, modules_.embedding, modules_.position);
  const Variable hidden = layers_(
      embedded,
      {.rows = step.rows, .step = &step, .cache = &state.cache, .memory_kv = state.memory_kv});
  return newest_rows(hidden.value(), tokens, step);
}

bool DecoderStack::prepare_replay(SequenceModel::State& state) const {
  return static_cast<MemoryState&>(state).prepare_replay(modules_.position);
}

}  // namespace nunchi
