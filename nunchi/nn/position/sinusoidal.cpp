#include "nunchi/nn/position/sinusoidal.h"

#include <cmath>

namespace nunchi::nn {

double sinusoid(std::int64_t position, std::int64_t column, std::int64_t width) {
  const double exponent = static_cast<double>(column - column % 2) / static_cast<double>(width);
  const double angle = static_cast<double>(position) / std::pow(10000.0, exponent);
  return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

Sinusoidal::Sinusoidal(const Parameters& parameters, std::int64_t width)
    : table_(parameters, width, PositionTable::Precision::compute,
             [width](std::int64_t position, std::int64_t column) {
               return sinusoid(position, column, width);
             }) {}

}  // namespace nunchi::nn
