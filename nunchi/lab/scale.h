// The loss against the size of the model.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab scale_lab();

}  // namespace nunchi::lab
