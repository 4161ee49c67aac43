// A Trace records intermediate values while a model runs: layers write them to named taps.
//
// Attach it to a context (set_trace) and run the model; every tap below is copied out of the arena,
// so that it outlives the step. Values that fusion hides (attention's weights) are computed only
// while a trace is attached, and the traced weights are those that the fused kernel uses.
//
// Taps, in the order of the flow; "layer" counts from 0 in its stack:
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

// The part of the model that writes a tap.
struct TapPlace {
  std::string_view stack;  // "encoder", "decoder"
  int layer = -1;          // -1: the stack itself
  std::string_view part;   // "self_attention", "cross_attention", "feed_forward" or ""
};

struct TapRecord {
  Tap tap;
  std::string stack;
  int layer;
  std::string part;
  std::vector<std::int64_t> shape;    // of all values; attention_weights: {elements}
  std::vector<std::int32_t> lengths;  // rows (queries) of each sentence
  std::vector<std::int32_t> keys;     // attention_weights: keys of each sentence
  std::vector<std::int64_t> begin;    // attention_weights: where each sentence's block starts
  int heads = 0;                      // attention_weights
  std::vector<float> values;
};

class Trace {
 public:
  Trace() = default;
  // Records these taps only.
  explicit Trace(std::vector<Tap> only) : only_(std::move(only)) {}

  void write(Tap tap, const TapPlace& place, const Tensor& values, const Ragged& rows);
  void write_attention_weights(const TapPlace& place, const Tensor& q, const Tensor& k,
                               const Ragged& queries, const Ragged& keys,
                               const AttentionOptions& options);
  // The same for weights that exist already.
  void write_weights(const TapPlace& place, const WeightsResult& weights, const Ragged& queries,
                     const Ragged& keys, int heads);

  const std::vector<TapRecord>& records() const { return records_; }
  // The first record that fits; null when there is none. An empty part fits any.
  const TapRecord* find(Tap tap, std::string_view stack, int layer,
                        std::string_view part = {}) const;
  void clear() { records_.clear(); }

 private:
  bool wants(Tap tap) const;

  std::vector<Tap> only_;  // none: all
  std::vector<TapRecord> records_;
};

// Writes to the context's trace if there is one.
void tap(Tap tap, const TapPlace& place, const Tensor& values, const Ragged& rows);

}  // namespace nunchi
