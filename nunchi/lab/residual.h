// The gradient by depth, with and without residual connections and norms.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab residual_lab();

}  // namespace nunchi::lab
