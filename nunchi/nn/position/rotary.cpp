#include "nunchi/nn/position/rotary.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/ops/rotary.h"

namespace nunchi::nn {
namespace {

// Angles are computed in f64: in f32, those of position 100,000 would be off by about 0.01.
PositionTable::Value cosines_and_sines(std::int64_t width, double base) {
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
    : table_(parameters, options.head_width, PositionTable::Precision::accumulator,
             cosines_and_sines(options.head_width, options.rotary_base)) {
  if (options.head_width % 2 != 0) {
    throw Error("rotary positions rotate pairs of columns: the head width must be even, not " +
                std::to_string(options.head_width) + ".");
  }
}

Variable Rotary::rotate(const Variable& qkv, int heads, const Ragged& batch) const {
  return rotary(
      qkv, batch,
      {.heads = heads, .table = table_.for_length(qkv.value().context(), batch.max_length)});
}

}  // namespace nunchi::nn
