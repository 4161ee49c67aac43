// Dropout as layers ask for it. It acts in training mode only (device/mode.h).
#pragma once

#include "nunchi/device/context.h"
#include "nunchi/kernels/dropout.h"

namespace nunchi {

struct Dropout {
  float probability = 0;
  std::uint32_t place = 0;  // the operation's fixed number in the model
};

inline kernels::Dropout dropout_on(const ContextBase& context, const Dropout& dropout) {
  return {.probability = context.is_training() ? dropout.probability : 0.0f,
          .place = dropout.place,
          .key = context.random()};
}

}  // namespace nunchi
