// Dropout as layers ask for it. It acts only while a tape records: in training.
#pragma once

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/dropout.h"

namespace nunchi {

struct Dropout {
  float probability = 0;
  std::uint32_t place = 0;  // the operation's fixed number in the model
};

inline kernels::Dropout dropout_on(const ContextBase& context, const Dropout& dropout) {
  return {.probability = context.tape() != nullptr ? dropout.probability : 0.0f,
          .place = dropout.place,
          .key = context.random()};
}

}  // namespace nunchi
