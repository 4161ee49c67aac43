// Attention with linear biases (Press et al.): the further a key, the lower its score, by a slope
// that each head has of its own. Nothing is learned.
#pragma once

#include <mutex>
#include <vector>

#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

// The paper's slopes: 2^(-8/H), 2^(-16/H), … where H is a power of two; other numbers of heads take
// those of the next lower power and then every other one of the next higher.
std::vector<double> alibi_slopes(int heads);

class Alibi final : public Position {
 public:
  // Keeps `parameters` to know where and in which type the model computes.
  Alibi(const Parameters& parameters, int heads) : parameters_(parameters), heads_(heads) {}

  ScoreBias score_bias(ContextBase& context) const override;

 private:
  const Parameters& parameters_;
  int heads_;
  mutable std::mutex mutex_;  // guards slopes_
  mutable Tensor slopes_;     // [H], made when first asked for
};

}  // namespace nunchi::nn
