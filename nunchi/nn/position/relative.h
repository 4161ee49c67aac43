// A learned number for each head and distance, added to scores; all layers of a stack share them.
#pragma once

#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

class Relative final : public Position {
 public:
  // Throws Error for options that do not fit together.
  Relative(Parameters& parameters, const std::string& name, const PositionOptions& options);

  ScoreBias score_bias(ContextBase& context) const override;

 private:
  RelativeOptions options_;
  Variable table_;  // [buckets, H]
};

}  // namespace nunchi::nn
