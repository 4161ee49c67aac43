// The attention of one sentence while the model learns.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab learning_lab();

}  // namespace nunchi::lab
