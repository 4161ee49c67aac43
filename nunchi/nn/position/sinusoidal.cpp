#include "nunchi/nn/position/sinusoidal.h"

#include <cmath>

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {
namespace {

template <class T>
std::vector<T> table_of(std::int64_t positions, std::int64_t width) {
  std::vector<T> table;
  table.reserve(static_cast<std::size_t>(positions * width));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t column = 0; column < width; ++column) {
      table.push_back(static_cast<T>(sinusoid(position, column, width)));
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
    table_ =
        Variable(parameters_.weights().dtype() == DType::f64
                     ? from_host(context, table_of<double>(positions, width_), {positions, width_})
                     : from_host(context, table_of<float>(positions, width_), {positions, width_}));
  }
  return table_;
}

}  // namespace nunchi::nn
