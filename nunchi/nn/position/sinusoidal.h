// The paper's positions: PE(pos, 2i) = sin(pos / 10000^(2i/C)), PE(pos, 2i+1) = cos of the same.
#pragma once

#include <vector>

#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

// The value at (position, column) for a model width of `width`.
double sinusoid(std::int64_t position, std::int64_t column, std::int64_t width);

class Sinusoidal final : public Position {
 public:
  // Keeps `parameters` to know where and in which type the model computes.
  Sinusoidal(const Parameters& parameters, std::int64_t width)
      : parameters_(parameters), width_(width) {}

  // The table grows to the longest sentence seen, doubling.
  Variable embed(std::int64_t length) const override;

 private:
  const Parameters& parameters_;
  std::int64_t width_;
  mutable Variable table_;  // [P, C]
};

}  // namespace nunchi::nn
