// A Trace records intermediate values while a model runs: layers write them to named taps.
//
//   Trace trace({Tap::attention_weights});
//   {
//     const TraceScope scope(context, trace);
//     model.loss(batch, {});
//   }
//
// The values are copied out of the arena, so they outlive the step. What fused kernels never store
// is recomputed while a trace is attached: it is what these kernels compute. Without a trace
// nothing is computed or copied.
//
// Taps, in the order of the data flow:
//   token_embedding      [T, C]       rows of the table, × √C if the model scales them
//   position             [T, C]       rows of the positions; models that add them to embeddings
//   embedding            [T, C]       input of a stack
//   query, key, value    [T or S, ·]  inputs of attention, after a rotation by their positions
//   scores               [H, T, S]    query · key, or what additive attention computes instead
//   scaled_scores        [H, T, S]    the same × 1/√D; the same if the model does not scale them
//   biased_scores        [H, T, S]    with the bias of their positions; models that have one
//   masked_scores        [H, T, S]    with -inf where a query does not see a key
//   attention_weights    [H, T, S]    softmax of masked_scores
//   attention_context    [T, H · D]   weights × values, heads side by side, before the projection
//   weight_gradient      [H, T, S]    d loss / d attention_weights, written by a backward pass
//   attention_output     [T, C]       after the projection
//   feed_forward_hidden  [T, F]       inside the feed-forward, after its non-linearity
//   feed_forward         [T, C]       output of the feed-forward
//   residual_sum         [T, C]       the stream with a sub-layer's output added
//   norm_output          [T, C]       post-norm: residual_sum, normalised; pre-norm: the
//                                     normalised stream that the sub-layer reads
//   layer_output         [T, C]
//   stack_output         [T, C]       output of a stack
//   logits               [T, V]
//
// A model that generates step by step writes the same taps in each step, with a row for each new
// token of each hypothesis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/tensor/ragged.h"
#include "nunchi/tensor/tensor.h"

namespace nunchi {

class AttentionScores;

enum class Tap : std::uint8_t {
  token_embedding,
  position,
  embedding,
  query,
  key,
  value,
  scores,
  scaled_scores,
  biased_scores,
  masked_scores,
  attention_weights,
  attention_context,
  weight_gradient,
  attention_output,
  feed_forward_hidden,
  feed_forward,
  residual_sum,
  norm_output,
  layer_output,
  stack_output,
  logits,
};

std::string_view name_of(Tap tap);

// The part of the model that writes to a tap.
struct TapLocation {
  std::string_view stack;  // "encoder", "decoder"
  int layer = -1;          // index in its stack, from 0; -1: the stack itself
  // "self_attention", "cross_attention", "state_attention", "feed_forward" or ""
  std::string_view part;
};

// The values that a layer wrote to one tap, copied to the host. The rows are in groups, one after
// another: the tokens of a sentence or, in a step of a search, the new tokens of a hypothesis.
struct TapRecord {
  Tap tap;
  std::string stack;
  int layer;
  std::string part;
  int step = -1;  // of a search, from 0; -1: whole sentences
  // Of `values`. For taps of scores and weights one number, the element count: groups differ in
  // shape.
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> lengths;     // rows (queries) of each group
  std::vector<std::int32_t> sentences;   // of each group; in a search, its unit
  std::vector<std::int32_t> hypotheses;  // of each group, among those of its sentence
  // Taps of scores and weights only: the keys of each group, the begin of each group in `values`,
  // which has [heads, queries, keys] numbers, and the heads.
  std::vector<std::int32_t> key_lengths;
  std::vector<std::int64_t> offsets;
  int heads = 0;
  std::vector<float> values;
};

// The groups of rows that layers write to taps, one after another.
struct TapGroups {
  std::vector<std::int32_t> lengths, sentences, hypotheses;

  std::int64_t rows() const;
};

// The output of attention and what its weights were multiplied by.
struct WatchedContext {
  Variable context;  // [T, H · D]
  Tensor value;      // [S, kv_heads · D]
  int heads = 1;
};

// What attention computes its scores from.
struct TracedHeads {
  Tensor q;  // [T, H · D]
  Tensor k;  // [S, kv_heads · D]
  AttentionOptions options;
  Tensor score_vector = {};  // [D] of additive attention; undefined: scores are dot products
};

class Trace {
 public:
  Trace() = default;
  // Records these taps only.
  explicit Trace(std::vector<Tap> taps) : taps_(std::move(taps)) {}

  bool wants(Tap tap) const;

  // In a step of a search, `rows` are replaced by the groups of begin_step().
  void write(Tap tap, const TapLocation& location, const Tensor& values, const Ragged& rows);
  void write(Tap tap, const TapLocation& location, std::vector<float> values, const Ragged& rows);

  // Recomputes scores and weights, and writes them: of whole sentences, or of a step whose rows see
  // these keys of a cache. The weights of additive attention of whole sentences are left to
  // write_attention_weights(): its kernel returns them.
  void write_attention(const TapLocation& location, const TracedHeads& heads, const Ragged& queries,
                       const Ragged& keys);
  void write_attention(const TapLocation& location, const TracedHeads& heads,
                       const VisibleKeys& keys);
  void write_attention_weights(const TapLocation& location, const AttentionWeightsResult& weights,
                               const Ragged& queries, const Ragged& keys, int heads);

  // While a tape records: the same context, whose backward pass writes weight_gradient. This trace
  // outlives the tape. Returns the context itself if nothing is to be written.
  Variable watch_context(const TapLocation& location, const WatchedContext& watched,
                         const Ragged& queries, const Ragged& keys);

  // Between the two, layers run one step of a search.
  void begin_step(TapGroups groups);
  void end_step() { in_step_ = false; }

  const std::vector<TapRecord>& records() const { return records_; }
  // The first matching record; null if there is none. An empty part matches any.
  const TapRecord* find(Tap tap, std::string_view stack, int layer, std::string_view part = {},
                        int step = -1) const;
  void clear() { records_.clear(); }

 private:
  // The groups of the current step, or the sentences of `rows`.
  TapGroups groups_of(const Ragged& rows) const;
  TapRecord& add_record(Tap tap, const TapLocation& location, const TapGroups& groups);
  bool wants_scores() const;
  void write_scores(const TapLocation& location, const TapGroups& groups,
                    const std::vector<std::int32_t>& key_lengths, AttentionScores scores);
  void write_per_head(Tap tap, const TapLocation& location, const TapGroups& groups,
                      const std::vector<std::int32_t>& key_lengths, int heads,
                      std::vector<float> values);

  std::vector<Tap> taps_;  // the taps to record; empty: all
  std::vector<TapRecord> records_;
  TapGroups step_groups_;
  int steps_ = 0;  // begun so far
  bool in_step_ = false;
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

// A tensor's elements as f32.
std::vector<float> host_floats(const Tensor& values);

}  // namespace nunchi
