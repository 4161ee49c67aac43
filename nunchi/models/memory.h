// The output of an encoder, and all that a decoder knows of the source.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct Memory {
  Variable rows;  // [S, C]
  Ragged batch;   // which rows belong to which sentence
};

}  // namespace nunchi
