// Two linear layers with a non-linearity between them, applied to each token independently.
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
    float dropout = 0;  // on the hidden activations
    bool bias = true;
    MatrixInit init = {};
  };
  FeedForward(Parameters& parameters, const std::string& name, const Options& options);

  // x [T, C] → [T, C]
  Branch operator()(LazyNorm& x, const LayerInput& in, const TapLocation& location) const;

 private:
  ActivationKind activation_;
  bool fused_;  // the activation is fused with the linear layers: relu or gelu_tanh, no dropout
  Dropout dropout_;
  Linear up_, down_;
};

}  // namespace nunchi::nn
