// Attention scores with and without the division by √d_k: how sharp the softmax becomes.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab scaling_lab();

}  // namespace nunchi::lab
