#include "nunchi/nn/position/sinusoidal.h"

#include <cmath>

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {
namespace {

std::vector<double> table_of(std::int64_t positions, std::int64_t width) {
  std::vector<double> table;
  table.reserve(static_cast<std::size_t>(positions * width));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t column = 0; column < width; ++column) {
      table.push_back(sinusoid(position, column, width));
    }
  }
  return table;
}

}  // namespace

double sinusoid(std::int64_t position, std::int64_t column, std::int64_t width) {
  const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(width);
  const double angle = static_cast<double>(position) / std::pow(10000.0, exponent);
  return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

Variable Sinusoidal::embed(std::int64_t length) const {
  if (!table_.defined() || table_.value().size(0) < length) {
    std::int64_t positions = 256;
    while (positions < length) positions *= 2;
    ContextBase& context = parameters_.weights().context();
    table_ = Variable(Tensor::empty(context, parameters_.dtype(), {positions, width_}));
    convert(from_host(context, table_of(positions, width_), {positions, width_}), table_.value());
  }
  return table_;
}

}  // namespace nunchi::nn
