// Training without the look-ahead mask: the loss falls, generation fails.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab mask_lab();

}  // namespace nunchi::lab
