// Learned positions: a trained row per position is added to embeddings.
#pragma once

#include "nunchi/nn/position/position.h"

namespace nunchi::nn {

class Learned final : public Position {
 public:
  Learned(Parameters& parameters, const std::string& name, const PositionOptions& options);

  // Throws Error for a sentence longer than the table.
  Variable embed(ContextBase& context, std::int64_t length) const override;
  Tensor reserve(ContextBase& context, std::int64_t length) const override {
    return embed(context, length).value();
  }

 private:
  Variable table_;  // [maximum, C]
};

}  // namespace nunchi::nn
