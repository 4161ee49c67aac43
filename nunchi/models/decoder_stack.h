// The Transformer's decoder: from target tokens and a memory to hidden rows.
//
//   target ids → embedding with positions → layers → hidden
//
// In each layer, a token attends to itself, to the tokens before it and to its sentence's memory.
//
// One matrix product, `memory_kv`, computes the keys and values of the memory for all layers.
#pragma once

#include <memory>
#include <span>

#include "nunchi/models/layer_stack.h"
#include "nunchi/models/memory.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/nn/linear.h"

namespace nunchi {

// The modules that a decoder uses; they must outlive it.
struct DecoderModules {
  const nn::Embedding& embedding;
  const nn::Position& position;
  std::int64_t vocabulary = 0;
};

class DecoderStack {
 public:
  DecoderStack(nn::Parameters& parameters, const DecoderModules& modules,
               const LayerStackOptions& options);

  // [T, C]; row t depends on the target's tokens 0 to t and on all of its sentence's memory.
  Variable operator()(const TokenBatch& target, const Memory& memory) const;

  // Generation: the same layers with a cache, see SequenceModel. add_memory() adds the memory of
  // new sources.
  std::unique_ptr<SequenceModel::State> make_state(ContextBase& context,
                                                   const nn::CacheLimits& limits) const;
  void add_memory(SequenceModel::State& state, const Memory& memory,
                  std::span<const std::int64_t> memory_begin) const;
  Tensor step(SequenceModel::State& state, const nn::StepTokens& tokens) const;
  bool prepare_replay(SequenceModel::State& state) const;

 private:
  // The columns of layer i in the keys and values of all layers.
  Variable layer_memory_kv(const Variable& all_kv, std::size_t i) const;

  DecoderModules modules_;
  std::int64_t key_value_width_;  // of one layer
  nn::Linear memory_projection_;  // [L · key_value_width, C]
  LayerStack<nn::DecoderLayer> layers_;
};

}  // namespace nunchi
