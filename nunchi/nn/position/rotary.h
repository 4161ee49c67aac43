// Rotary positions (Su et al.): queries and keys are rotated, pair of columns by pair of columns,
// so that their product depends on their distance. Column i of a head's first half goes with column
// i of its second half, as in GPT-NeoX and Llama.
#pragma once

#include "nunchi/nn/position/position.h"
#include "nunchi/nn/position/position_table.h"

namespace nunchi::nn {

class Rotary final : public Position {
 public:
  // Throws Error for an odd head width.
  Rotary(const Parameters& parameters, const PositionOptions& options);

  Variable rotate(const Variable& qkv, int heads, const Ragged& batch) const override;
  Tensor reserve(ContextBase& context, std::int64_t length) const override {
    return table_.reaching(context, length);
  }

 private:
  PositionTable table_;  // [P, D]: cosines, then sines
};

}  // namespace nunchi::nn
