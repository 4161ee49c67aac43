// Embeds rows of F features: projects them to the model's width, adds positions, applies dropout.
#pragma once

#include <string>

#include "nunchi/nn/linear.h"
#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

class FeatureEmbedding {
 public:
  struct Options {
    std::int64_t features = 0;  // F
    std::int64_t width = 0;     // C
    bool bias = true;
    float dropout = 0;
  };
  // `name` prefixes the projection's parameters.
  FeatureEmbedding(Parameters& parameters, const std::string& name, const Options& options);

  // values f32 [capacity, F] → [capacity, C]
  Variable operator()(const Tensor& values, const Ragged& batch, const Position& position) const;

 private:
  Linear projection_;
  Dropout dropout_;
};

}  // namespace nunchi::nn
