// Learned relative positions: a bias per head and bucket of distances, added to attention scores
// and shared by all layers of a stack.
#pragma once

#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

class Relative final : public Position {
 public:
  // Throws Error as RelativeOptions::check() does.
  Relative(Parameters& parameters, const std::string& name, const PositionOptions& options);

  ScoreBias score_bias(ContextBase& context) const override;

 private:
  RelativeOptions options_;
  Variable table_;  // [buckets, H]
};

}  // namespace nunchi::nn
