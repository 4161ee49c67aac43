#include "nunchi/nn/position/alibi.h"

#include <cmath>

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {

std::vector<double> alibi_slopes(int heads) {
  int power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (int h = 1; h <= power; ++h) slopes.push_back(std::exp2(-8.0 * h / power));
  for (int h = 1; power < heads && static_cast<int>(slopes.size()) < heads; h += 2) {
    slopes.push_back(std::exp2(-4.0 * h / power));
  }
  return slopes;
}

ScoreBias Alibi::score_bias() const {
  if (!slopes_.defined()) {
    ContextBase& context = parameters_.weights().context();
    slopes_ = Tensor::empty(context, summed(parameters_.dtype()), {heads_});
    convert(from_host(context, alibi_slopes(heads_), {heads_}), slopes_);
  }
  return {.kind = ScoreBias::Kind::slopes, .slopes = slopes_};
}

}  // namespace nunchi::nn
