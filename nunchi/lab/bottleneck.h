// A recurrent encoder-decoder without and with attention, and the Transformer, by length.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab bottleneck_lab();

}  // namespace nunchi::lab
