// The order in which the gradients of a step's micro-batches are added up.
#pragma once

#include <cstdint>

namespace nunchi {

enum class GradientSum : std::uint8_t {
  sequential,  // each worker adds its own one after another
  tree,        // a fixed binary tree over all micro-batches: the number of workers changes no bit
};

}  // namespace nunchi
