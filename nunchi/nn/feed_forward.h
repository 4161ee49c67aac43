// Two linear layers with a non-linearity between them, for each token by itself.
#pragma once

#include "nunchi/nn/layer_input.h"
#include "nunchi/nn/linear.h"
#include "nunchi/ops/activation.h"

namespace nunchi::nn {

class FeedForward {
 public:
  struct Options {
    std::int64_t width = 0;   // C
    std::int64_t hidden = 0;  // F
    ActivationKind activation = ActivationKind::relu;
    float dropout = 0;  // of the hidden activations
    bool bias = true;
    MatrixInit init = {};
  };
  FeedForward(Parameters& parameters, const std::string& name, const Options& options);

  // x [T, C] → [T, C]
  Branch operator()(LazyNorm& x, const LayerInput& in, const TapPlace& place) const;

 private:
  ActivationKind activation_;
  bool fused_;  // relu or gelu_tanh, without dropout, is part of the products
  Dropout dropout_;
  Linear up_, down_;
};

}  // namespace nunchi::nn
