// Rotary positions (Su et al.): each pair of columns of queries and keys is rotated by an angle
// proportional to the position, so that their dot product depends on their distance. Column i of a
// head's first half is paired with column i of its second half, as in GPT-NeoX and Llama.
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
    return table_.for_length(context, length);
  }

 private:
  PositionTable table_;  // [P, D]: cosines, then sines
};

}  // namespace nunchi::nn
