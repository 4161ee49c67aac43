// One, four and eight heads of one width: quality, kinds of heads, the diagonal.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab heads_lab();

}  // namespace nunchi::lab
