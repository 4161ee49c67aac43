// Attention of a recurrent decoder over the encoder's states.
//
// It runs after the recurrent layers (Luong et al. 2015, without input feeding): the state h of a
// target position attends to the encoder's states m and is combined with the context,
//
//   context = Σ softmax(score(h, m)) m
//   h~ = tanh(W_c context + W_h h + b)
//
// and h~ is projected to the vocabulary. The recurrence does not read h~, so one call runs it over
// all target positions, and one call attends for all of them. The score is Luong's dot product
// h · m or Bahdanau's additive v · tanh(W h + U m).
#pragma once

#include <string>

#include "nunchi/nn/linear.h"
#include "nunchi/ops/decode/decode_attention.h"
#include "nunchi/ops/linear_sum.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {

enum class StateScore : std::uint8_t { additive, dot };

// Keys and values of the encoder's states.
struct StateMemory {
  Variable keys;    // [S, C]: U m, or the states themselves for the dot product
  Variable values;  // [S, C]: the states themselves
};

class StateAttention {
 public:
  struct Options {
    StateScore score = StateScore::dot;
    std::int64_t width = 0;  // C
    int layer = 0;           // of the decoder, whose output attends; for traces
  };
  StateAttention(Parameters& parameters, const std::string& name, const Options& options);

  // Keys and values of states [S, C], computed once for all target positions.
  StateMemory memory(const Variable& states) const;
  // hidden [T, C] → W_c context + W_h hidden + b [T, C], before its tanh.
  Variable operator()(const Variable& hidden, const Ragged& batch, const StateMemory& memory,
                      const Ragged& source) const;
  // The same for rows of a decode step, each over the memory of its sentence. `row_offsets` is 0,
  // 1, …, rows.capacity (i32).
  Variable step(const Variable& hidden, const Ragged& rows, const StateMemory& memory,
                const VisibleKeys& keys, const Tensor& row_offsets) const;

 private:
  Variable query(const Variable& hidden) const;
  TracedHeads traced_heads(const Variable& q, const StateMemory& memory) const;
  Variable combine(const Variable& context, const Variable& hidden) const;

  StateScore score_;
  TapLocation location_;
  Variable query_, key_, scorer_;  // additive score only: W [C, C], U [C, C], v [C]
  LinearSum join_;
};

}  // namespace nunchi::nn
