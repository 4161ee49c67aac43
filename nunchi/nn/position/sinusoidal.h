// Sinusoidal positions (Vaswani et al.):
// PE(pos, 2i) = sin(pos / 10000^(2i/C)), PE(pos, 2i+1) = cos(pos / 10000^(2i/C)).
#pragma once

#include "nunchi/nn/position/position.h"
#include "nunchi/nn/position/position_table.h"

namespace nunchi::nn {

// The value at (position, column) for a model width of `width`.
double sinusoid(std::int64_t position, std::int64_t column, std::int64_t width);

class Sinusoidal final : public Position {
 public:
  Sinusoidal(const Parameters& parameters, std::int64_t width);

  Variable embed(ContextBase& context, std::int64_t length) const override {
    return Variable(table_.for_length(context, length));
  }
  Tensor reserve(ContextBase& context, std::int64_t length) const override {
    return table_.for_length(context, length);
  }

 private:
  PositionTable table_;  // [P, C]
};

}  // namespace nunchi::nn
