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

ScoreBias Alibi::score_bias(ContextBase& context) const {
  const std::lock_guard lock(mutex_);
  if (!slopes_.defined()) {
    slopes_ = Tensor::empty(parameters_.weights().context(), accumulator_type(parameters_.dtype()),
                            {heads_});
    convert(from_host(context, alibi_slopes(heads_), {heads_}), slopes_);
    context.synchronize();  // other contexts may read them
  }
  return {.kind = ScoreBias::Kind::slopes, .slopes = slopes_};
}

}  // namespace nunchi::nn
