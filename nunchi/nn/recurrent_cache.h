// What a recurrent decoder remembers while it generates: the newest state of every hypothesis.
//
// A step gathers the states of its hypotheses' parents and leaves the new ones in other memory; the
// next step goes the other way. So two steps leave everything where it was and can be replayed.
#pragma once

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
  RecurrentCache(ContextBase& context, const Options& options)
      : context_(context), options_(options) {}

  // Forgets all hypotheses; those of the next step begin with the states of their sentences, [B, C]
  // of each layer.
  void restart(std::vector<StateRows> first);

  struct Step {
    std::vector<StateRows> before, after;  // of each layer, [step.last.capacity, C]
  };
  // The states that the hypotheses of a step meet, and room for those that they leave.
  Step extend(const StepTokens& tokens, const DecodeStep& step);
  // Makes the memory of the step after next as large as the next one's. Returns whether any moved.
  bool reserve();

 private:
  bool make_room(std::int64_t rows);  // in now_; whether it moved
  void turn();

  ContextBase& context_;
  Options options_;
  std::vector<StateRows> first_, now_, before_;
  bool turned_ = false;  // they have changed places an odd number of times
};

}  // namespace nunchi::nn
