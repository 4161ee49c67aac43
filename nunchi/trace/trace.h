// A Trace records intermediate values while a model runs: layers write them to named taps.
//
//   Trace trace({Tap::attention_weights});
//   {
//     const TraceScope scope(context, trace);
//     model.loss(batch, {});
//   }
//
// The values are copied out of the arena, so they outlive the step. Attention weights, which the
// fused kernel never stores, are recomputed while a trace is attached; they are the weights that
// the fused kernel uses.
//
// Taps, in the order of the data flow:
//   embedding           [T, C]        input of a stack: tokens × √C + positions
//   query, key, value   [T or S, ·]   inputs of attention
//   attention_weights   per sentence [H, queries, keys]
//   attention_context   [T, C]        weights × values, heads side by side, before the projection
//   attention_output    [T, C]        after the projection
//   feed_forward        [T, C]        output of the feed-forward
//   layer_output        [T, C]
//   stack_output        [T, C]        output of a stack
//   logits              [T, V]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/ops/attention.h"
#include "nunchi/tensor/ragged.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

enum class Tap : std::uint8_t {
  embedding,
  query,
  key,
  value,
  attention_weights,
  attention_context,
  attention_output,
  feed_forward,
  layer_output,
  stack_output,
  logits,
};

std::string_view name_of(Tap tap);

// The part of the model that writes to a tap.
struct TapLocation {
  std::string_view stack;  // "encoder", "decoder"
  int layer = -1;          // index in its stack, from 0; -1: the stack itself
  std::string_view part;   // "self_attention", "cross_attention", "feed_forward" or ""
};

// The values that a layer wrote to one tap, copied to the host.
struct TapRecord {
  Tap tap;
  std::string stack;
  int layer;
  std::string part;
  // Of `values`. For attention_weights one number, the element count: sentences differ in shape.
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> lengths;      // rows (queries) of each sentence
  std::vector<std::int32_t> key_lengths;  // attention_weights: keys of each sentence
  std::vector<std::int64_t> offsets;      // attention_weights: begin of each sentence in `values`
  int heads = 0;                          // attention_weights
  std::vector<float> values;
};

class Trace {
 public:
  Trace() = default;
  // Records these taps only.
  explicit Trace(std::vector<Tap> taps) : taps_(std::move(taps)) {}

  void write(Tap tap, const TapLocation& location, const Tensor& values, const Ragged& rows);
  void compute_and_write_attention_weights(const TapLocation& location, const Tensor& q,
                                           const Tensor& k, const Ragged& queries,
                                           const Ragged& keys, const AttentionOptions& options);
  void write_attention_weights(const TapLocation& location, const AttentionWeightsResult& weights,
                               const Ragged& queries, const Ragged& keys, int heads);

  const std::vector<TapRecord>& records() const { return records_; }
  // The first matching record; null if there is none. An empty part matches any.
  const TapRecord* find(Tap tap, std::string_view stack, int layer,
                        std::string_view part = {}) const;
  void clear() { records_.clear(); }

 private:
  bool wants(Tap tap) const;

  std::vector<Tap> taps_;  // the taps to record; empty: all
  std::vector<TapRecord> records_;
};

// Attaches a trace to a context and restores the previous one, or none, at the end of the scope,
// also if an exception ends it. The trace must outlive the scope.
class TraceScope {
 public:
  TraceScope(ContextBase& context, Trace& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  ContextBase& context_;
  Trace* previous_;
};

// Writes to the context's trace if there is one.
void write_to_trace(Tap tap, const TapLocation& location, const Tensor& values, const Ragged& rows);

}  // namespace nunchi
