// Teacher forcing against free running: training steps to the same loss.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab teacher_forcing_lab();

}  // namespace nunchi::lab
