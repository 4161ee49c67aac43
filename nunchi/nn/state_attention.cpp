#include "nunchi/nn/state_attention.h"

#include <cmath>

#include "nunchi/ops/additive_attention.h"
#include "nunchi/ops/check.h"

namespace nunchi::nn {
namespace {

// Luong's dot product is not scaled.
AttentionOptions dot_product() { return {.heads = 1, .scale = 1}; }

}  // namespace

StateAttention::StateAttention(Parameters& parameters, const std::string& name,
                               const Options& options)
    : score_(options.score), location_{"decoder", options.layer, "state_attention"} {
  const std::int64_t width = options.width;
  const auto matrix = [&](const std::string& suffix, std::int64_t inputs) {
    return parameters.add(name + "." + suffix + ".weight", {width, width},
                          Init::xavier(inputs, width), ParameterUse::product);
  };
  if (score_ == StateScore::additive) {
    query_ = matrix("query", width);
    key_ = matrix("key", width);
    scorer_ = parameters.add(name + ".scorer", {width},
                             Init{Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(width))});
  }
  join_ = {.first_weight = matrix("context", 2 * width),
           .second_weight = matrix("hidden", 2 * width),
           .bias = parameters.add(name + ".bias", {width}, Init::zeros())};
}

StateMemory StateAttention::memory(const Variable& states) const {
  const bool additive = score_ == StateScore::additive;
  return {additive ? linear(states, {.weight = key_}) : states, states};
}

Variable StateAttention::operator()(const Variable& hidden, const Ragged& batch,
                                    const StateMemory& memory, const Ragged& source) const {
  Trace* const trace = hidden.value().context().trace();
  const Variable q = query(hidden);
  Variable context;
  if (score_ == StateScore::additive) {
    const AdditiveResult result =
        additive_attention({q, memory.keys, memory.values, scorer_}, batch, source);
    if (trace != nullptr)
      trace->write_attention_weights(location_, result.weights, batch, source, 1);
    context = result.out;
  } else {
    context = attention(q, memory.keys, memory.values, batch, source, dot_product());
  }
  if (trace != nullptr) {
    trace->write(Tap::query, location_, q.value(), batch);
    trace->write(Tap::key, location_, memory.keys.value(), source);
    trace->write(Tap::value, location_, memory.values.value(), source);
    trace->write_attention(location_, traced_heads(q, memory), batch, source);
    trace->write(Tap::attention_context, location_, context.value(), batch);
    context = trace->watch_context(location_, {context, memory.values.value()}, batch, source);
  }
  return combine(context, hidden);
}

Variable StateAttention::step(const Variable& hidden, const Ragged& rows, const StateMemory& memory,
                              const VisibleKeys& keys, const Tensor& row_offsets) const {
  const Variable q = query(hidden);
  Variable context;
  if (score_ == StateScore::additive) {
    context =
        Variable(additive_decode_attention({q, memory.keys, memory.values, scorer_}, rows, keys));
  } else {
    // Each row is a sentence of one query; hypotheses of one sentence read the same keys.
    Ragged queries = rows, key_rows;
    queries.sentences = key_rows.sentences = rows.capacity;
    queries.max_length = 1;
    queries.offsets = row_offsets.flat_slice(0, {rows.capacity + 1});
    queries.sentence_index = row_offsets.flat_slice(0, {rows.capacity});
    key_rows.capacity = memory.keys.value().size(0);
    key_rows.max_length = keys.max_keys;
    key_rows.begin = keys.begin;
    key_rows.length = keys.length;
    context = attention(q, memory.keys, memory.values, queries, key_rows, dot_product());
  }
  if (Trace* trace = hidden.value().context().trace()) {
    trace->write(Tap::query, location_, q.value(), rows);
    trace->write_attention(location_, traced_heads(q, memory), keys);
    trace->write(Tap::attention_context, location_, context.value(), rows);
  }
  return combine(context, hidden);
}

Variable StateAttention::query(const Variable& hidden) const {
  return score_ == StateScore::additive ? linear(hidden, {.weight = query_}) : hidden;
}

TracedHeads StateAttention::traced_heads(const Variable& q, const StateMemory& memory) const {
  const bool additive = score_ == StateScore::additive;
  return {q.value(), memory.keys.value(), dot_product(), additive ? scorer_.value() : Tensor()};
}

Variable StateAttention::combine(const Variable& context, const Variable& hidden) const {
  return linear_sum(context, hidden, join_);
}

}  // namespace nunchi::nn
