// The inputs of a layer besides the residual stream.
//
// Training, encoding, prefill and decoding run the same layers. LayerInput says where attention
// finds keys and values: in the rows of the batch itself, or in the cache of a decode step.
#pragma once

#include "nunchi/nn/decoder_cache.h"
#include "nunchi/ops/residual_stream.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

struct LayerInput {
  int layer = 0;  // index in its stack
  const Ragged& rows;
  // Null: the rows are whole sentences, and each token attends to its own sentence. Otherwise the
  // rows are the newest tokens of hypotheses; they attend to `cache`, and their keys and values are
  // added to it.
  const DecodeStep* step = nullptr;
  Tensor cache = {};  // this layer's keys and values, [slots, at least key_value_width]
  // Decoder layers: this layer's keys and values of the encoder's output, [S, key_value_width].
  Variable memory_kv = {};
  // The sentences of memory_kv. A decode step reads DecodeStep::memory instead.
  const Ragged* memory = nullptr;
};

// Write to the context's trace if there is one.
void write_to_trace(Tap tap, const TapLocation& location, const Variable& rows,
                    const LayerInput& in);
void write_to_trace(Tap tap, const TapLocation& location, const Branch& branch,
                    const LayerInput& in);
void write_to_trace(Tap tap, const TapLocation& location, const ResidualStream& stream,
                    const LayerInput& in);

// While it exists, the context's trace, if there is one, assigns what layers write to this step and
// its hypotheses. Models create one around the layers of a decode step.
class TraceStep {
 public:
  explicit TraceStep(const StepTokens& tokens);
  ~TraceStep();
  TraceStep(const TraceStep&) = delete;
  TraceStep& operator=(const TraceStep&) = delete;

 private:
  Trace* trace_;
};

}  // namespace nunchi::nn
