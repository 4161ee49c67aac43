// The order in which the gradients of a step's micro-batches are added up.
#pragma once

#include <cstdint>

namespace nunchi {

enum class GradientSum : std::uint8_t {
  sequential,  // each worker adds the gradients of its micro-batches one after another
  tree,        // a fixed binary tree over all micro-batches: bits do not depend on the workers
};

}  // namespace nunchi
