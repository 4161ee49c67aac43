#include "nunchi/nn/position/rotary.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/ops/rotary.h"

namespace nunchi::nn {
namespace {

// Angles are found in f64: in f32 those of position 100,000 would be wrong by a hundredth.
PositionTable::Value turns(std::int64_t width, double base) {
  std::vector<double> frequency;
  for (std::int64_t i = 0; i < width / 2; ++i) {
    frequency.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  }
  return [frequency, half = width / 2](std::int64_t position, std::int64_t column) {
    const double angle =
        static_cast<double>(position) * frequency[static_cast<std::size_t>(column % half)];
    return column < half ? std::cos(angle) : std::sin(angle);
  };
}

}  // namespace

Rotary::Rotary(const Parameters& parameters, const PositionOptions& options)
    : table_(parameters, options.head_width, PositionTable::Kept::exact,
             turns(options.head_width, options.rotary_base)) {
  if (options.head_width % 2 != 0) {
    throw Error("rotary positions turn pairs of columns, but a head has " +
                std::to_string(options.head_width) + ".");
  }
}

Variable Rotary::rotate(const Variable& qkv, int heads, const Ragged& batch) const {
  return rotary(
      qkv, batch,
      {.heads = heads, .table = table_.reaching(qkv.value().context(), batch.max_length)});
}

}  // namespace nunchi::nn
