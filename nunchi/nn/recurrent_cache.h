// What a recurrent decoder remembers while it generates: the newest state of every hypothesis.
//
// States have the rows of a DecoderCache's table. A step gathers the states of its hypotheses'
// parents from one buffer and leaves the new ones in the other.
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
    bool cells = false;      // lstm's c beside h
    DType dtype = DType::f32;
  };
  // `rows`: those of the DecoderCache's table.
  RecurrentCache(ContextBase& context, const Options& options, std::int64_t rows);

  // The states of the newest sources, [B, C] of each layer. Units that enter begin with the state
  // of their source (StepTokens::sources).
  void set_first(std::vector<StateRows> first) { first_ = std::move(first); }

  struct Step {
    std::vector<StateRows> before, after;  // of each layer, [step.last.capacity, C]
  };
  // The states that the hypotheses of a step begin with, and memory for those that they leave.
  Step extend(const StepTokens& tokens, const DecodeStep& step) const;

 private:
  std::vector<StateRows> first_;
  std::array<std::vector<StateRows>, 2> buffers_;  // [rows, C] of each layer
};

}  // namespace nunchi::nn
