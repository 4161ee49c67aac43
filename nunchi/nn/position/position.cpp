#include "nunchi/nn/position/position.h"

#include "nunchi/nn/position/learned.h"
#include "nunchi/nn/position/sinusoidal.h"

namespace nunchi::nn {

Variable Position::embed(std::int64_t) const { return {}; }
void Position::rotate(Variable&, Variable&, const Ragged&) const {}
ScoreBias Position::score_bias() const { return {}; }

std::unique_ptr<Position> make_position(Parameters& parameters, const std::string& name,
                                        const PositionOptions& options) {
  switch (options.kind) {
    case PositionKind::sinusoidal:
      return std::make_unique<Sinusoidal>(parameters, options.width);
    case PositionKind::learned:
      return std::make_unique<Learned>(parameters, name, options);
    case PositionKind::none:
      break;
  }
  return std::make_unique<Position>();
}

}  // namespace nunchi::nn
