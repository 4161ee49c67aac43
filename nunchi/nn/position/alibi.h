// Attention with linear biases (Press et al.): a score falls linearly with the distance of its key,
// with a fixed slope per head. There are no parameters.
#pragma once

#include <mutex>
#include <vector>

#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

// The paper's slopes: 2^(-8/H), 2^(-16/H), … if H is a power of two. Otherwise the slopes of the
// next lower power of two, followed by every second slope of the next higher one.
std::vector<double> alibi_slopes(int heads);

class Alibi final : public Position {
 public:
  // Refers to `parameters` for the context and the type that the model computes in.
  Alibi(const Parameters& parameters, int heads) : parameters_(parameters), heads_(heads) {}

  ScoreBias score_bias(ContextBase& context) const override;

 private:
  const Parameters& parameters_;
  int heads_;
  mutable std::mutex mutex_;  // guards slopes_
  mutable Tensor slopes_;     // [H], created on first use
};

}  // namespace nunchi::nn
