// Attention with a stored N × N matrix, tiled attention and a recurrence, by length.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab memory_lab();

}  // namespace nunchi::lab
