// Two linear layers with a non-linearity between them, for each token on its own.
#pragma once

#include "nunchi/nn/residual.h"
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
  };
  FeedForward(Parameters& parameters, const std::string& name, const Options& options);

  // x [T, C] → [T, C]
  Variable operator()(const Variable& x, const Ragged& batch) const;
  // The same while nobody records.
  Stream step(PendingNorm& x, const Ragged& rows) const;

 private:
  ActivationKind activation_;
  bool fused_;  // relu or gelu_tanh, without dropout, is part of the products
  Dropout dropout_;
  Linear up_, down_;
};

}  // namespace nunchi::nn
