// The Transformer's decoder: from target tokens and a memory to hidden rows.
//
//   target ids → embedding with positions → layers, each token over those before it and over the
//   memory → hidden
//
// The keys and values of the memory are computed for all layers by one product, `memory_kv`.
#pragma once

#include <memory>
#include <span>

#include "nunchi/models/layer_stack.h"
#include "nunchi/models/memory.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/nn/linear.h"

namespace nunchi {

// What a decoder is built on; all of it outlives the decoder.
struct DecoderInput {
  const nn::Embedding& embedding;
  const nn::Position& position;
  std::int64_t vocabulary = 0;
};

class DecoderStack {
 public:
  DecoderStack(nn::Parameters& parameters, const DecoderInput& input,
               const LayerStackOptions& options);

  // [T, C]; row t has seen the target's tokens 0 to t and all of its sentence's memory.
  Variable operator()(const TokenBatch& target, const Memory& memory) const;

  // Generation: the same layers over a cache. See SequenceModel for all but add_memory(), which
  // adds the memory of new sources.
  std::unique_ptr<SequenceModel::State> make_state(ContextBase& context,
                                                   const nn::CacheLimits& limits) const;
  void add_memory(SequenceModel::State& state, const Memory& memory,
                  std::span<const std::int64_t> memory_begin) const;
  Tensor step(SequenceModel::State& state, const nn::StepTokens& tokens) const;
  bool prepare_replay(SequenceModel::State& state) const;

 private:
  // Layer i's columns of the keys and values of all layers.
  Variable memory_of_layer(const Variable& all_kv, std::size_t i) const;

  DecoderInput input_;
  std::int64_t key_value_width_;  // of one layer
  nn::Linear memory_kv_;          // [L · key_value_width, C]
  LayerStack<nn::DecoderLayer> layers_;
};

}  // namespace nunchi
