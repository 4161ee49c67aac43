// The inputs of a layer beside the residual stream.
//
// Training, encoding, prefill and decoding run the same layers; this says where their attention
// finds keys and values: in the rows of the batch itself, or in the cache of a decode step.
#pragma once

#include "nunchi/nn/decoder_cache.h"
#include "nunchi/ops/residual_stream.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

struct LayerInput {
  int layer = 0;  // number in its stack, from 0
  const Ragged& rows;
  // Null: the rows are whole sentences, and each token attends to its own sentence. Otherwise they
  // are the newest tokens of hypotheses, which attend to `cache` and are added to it.
  const DecodeStep* step = nullptr;
  Tensor cache = {};  // [slots, key_value_width or more], with a step: this layer's keys and values
  // Decoder layers: the encoder's output as this layer's keys and values, [S, key_value_width].
  Variable memory_kv = {};
  const Ragged* memory = nullptr;  // the sentences of memory_kv; a step has its own description
};

// Write to the context's trace if there is one. Decode steps are not traced: their rows have no
// sentences.
void tap(Tap tap, const TapPlace& place, const Variable& rows, const LayerInput& in);
void tap(Tap tap, const TapPlace& place, Branch& branch, const LayerInput& in);
void tap(Tap tap, const TapPlace& place, ResidualStream& stream, const LayerInput& in);

}  // namespace nunchi::nn
