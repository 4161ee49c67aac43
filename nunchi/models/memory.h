// The output of an encoder: all that a decoder knows about the source.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct Memory {
  Variable rows;  // [S, C]
  Ragged batch;   // which rows belong to which sentence
};

}  // namespace nunchi
