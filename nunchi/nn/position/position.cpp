#include "nunchi/nn/position/position.h"

#include <cmath>

#include "nunchi/nn/position/alibi.h"
#include "nunchi/nn/position/learned.h"
#include "nunchi/nn/position/relative.h"
#include "nunchi/nn/position/rotary.h"
#include "nunchi/nn/position/sinusoidal.h"

namespace nunchi::nn {

Variable Position::embed(ContextBase&, std::int64_t) const { return {}; }
Variable Position::rotate(const Variable& qkv, int, const Ragged&) const { return qkv; }
ScoreBias Position::score_bias(ContextBase&) const { return {}; }
Tensor Position::reserve(ContextBase&, std::int64_t) const { return {}; }

Init table_init(const PositionOptions& options) {
  return Init::normal(options.deviation > 0 ? options.deviation
                                            : 1 / std::sqrt(static_cast<double>(options.width)));
}

std::unique_ptr<Position> make_position(Parameters& parameters, const std::string& name,
                                        const PositionOptions& options) {
  switch (options.kind) {
    case PositionKind::sinusoidal:
      return std::make_unique<Sinusoidal>(parameters, options.width);
    case PositionKind::learned:
      return std::make_unique<Learned>(parameters, name, options);
    case PositionKind::rotary:
      return std::make_unique<Rotary>(parameters, options);
    case PositionKind::relative:
      return std::make_unique<Relative>(parameters, name, options);
    case PositionKind::alibi:
      return std::make_unique<Alibi>(parameters, options.heads);
    case PositionKind::none:
      break;
  }
  return std::make_unique<Position>();
}

}  // namespace nunchi::nn
