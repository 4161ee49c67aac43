// The states of a recurrent decoder during generation: the newest state of every hypothesis.
//
// Each row of a DecoderCache's table has a state. A step gathers the states of its hypotheses'
// parents from one buffer and writes the new states to the other.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "nunchi/nn/decoder_cache.h"
#include "nunchi/ops/recurrent.h"

namespace nunchi::nn {

class RecurrentCache {
 public:
  struct Options {
    std::size_t layers = 0;
    std::int64_t width = 0;  // C
    bool cells = false;      // states have a cell c besides h (LSTM)
    DType dtype = DType::f32;
  };
  // `rows`: DecoderCache::table_rows().
  RecurrentCache(ContextBase& context, const Options& options, std::int64_t rows);

  // Sets the initial states of the newest sources, [B, C] for each layer. A unit starts with the
  // state of its source (StepTokens::sources).
  void set_initial_states(std::vector<StateRows> initial) { initial_ = std::move(initial); }

  struct Step {
    std::vector<StateRows> before, after;  // [step.last.capacity, C] for each layer
  };
  // The states of a step's hypotheses before the step, and memory for their states after it.
  Step extend(const StepTokens& tokens, const DecodeStep& step) const;

 private:
  std::vector<StateRows> initial_;
  std::array<std::vector<StateRows>, 2> buffers_;  // [rows, C] for each layer
};

}  // namespace nunchi::nn
