// Dropout as layers specify it. It is active only in training mode (device/mode.h).
#pragma once

#include "nunchi/device/context.h"
#include "nunchi/kernels/dropout.h"

namespace nunchi {

struct Dropout {
  float probability = 0;
  std::uint32_t operation_id = 0;  // the operation's fixed number in the model
};

// The arguments for kernels on `context`; the probability is 0 unless in training mode.
inline kernels::Dropout dropout_on(const ContextBase& context, const Dropout& dropout) {
  return {.probability = context.is_training() ? dropout.probability : 0.0f,
          .operation_id = dropout.operation_id,
          .key = context.device_random_key()};
}

}  // namespace nunchi
