// Weights that are replaced for a while.
#pragma once

#include <vector>

#include "nunchi/nn/parameters.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

// Copies f32 weights to the host and copies them back at the end of the scope.
class RestoredWeights {
 public:
  // `parameters` must outlive this object.
  explicit RestoredWeights(nn::Parameters& parameters)
      : parameters_(parameters), weights_(to_host<float>(parameters.weights())) {}
  ~RestoredWeights() {
    copy_from_host<float>(weights_, parameters_.weights());
    parameters_.changed();
  }
  RestoredWeights(const RestoredWeights&) = delete;
  RestoredWeights& operator=(const RestoredWeights&) = delete;

 private:
  nn::Parameters& parameters_;
  std::vector<float> weights_;
};

}  // namespace nunchi
