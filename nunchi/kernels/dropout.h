// Dropout as part of other kernels: each element is kept with probability 1 - p and scaled by 1 /
// (1 - p), or set to zero.
//
// Each element has a random number of 16 bits from Philox under the step's key. One call with the
// counter (column / 8, row, sentence, operation_id) yields the numbers of eight neighbouring
// columns: of each 32-bit word, first the lower half and then the upper. p is rounded to a multiple
// of 1/65,536, and the scale uses the rounded p.
#pragma once

#include <cmath>
#include <cstdint>

#include "nunchi/base/random.h"

namespace nunchi::kernels {

struct Dropout {
  float probability = 0;
  std::uint32_t operation_id = 0;  // the operation's fixed number in the model
  const RandomKey* key = nullptr;  // in device memory

  // An element is dropped when its random number is below this.
  std::uint32_t threshold() const {
    return static_cast<std::uint32_t>(std::lround(double{probability} * 65536.0));
  }
  bool active() const { return threshold() > 0; }
  double scale() const { return 65536.0 / (65536.0 - threshold()); }
};

}  // namespace nunchi::kernels
