// An exponential moving average of the weights (EMA), updated after each training step.
#pragma once

#include <cstdint>

#include "nunchi/nn/parameters.h"

namespace nunchi {

class MovingAverage {
 public:
  // Starts with the current weights, which are f32. `parameters` must outlive this object.
  MovingAverage(const nn::Parameters& parameters, double decay);

  // Starts again with the current weights.
  void reset();
  // average = d * average + (1 - d) * weights, where d is min(decay, (1 + n) / (10 + n)) and n the
  // number of weight updates so far, so that the initial weights are forgotten soon. The number of
  // threads changes no bit.
  void update(std::int64_t updates);

  // Copies the average to weights of the same model.
  void copy_to(nn::Parameters& parameters) const;

  const Tensor& weights() const { return average_; }  // f32 [flat size], as Parameters::weights()

 private:
  const nn::Parameters& parameters_;
  double decay_;
  Tensor average_;
  Tensor scratch_;  // f32, a chunk of weights times 1 - d
};

}  // namespace nunchi
