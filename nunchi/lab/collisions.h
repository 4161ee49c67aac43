// Whether two positions can get nearly the same sinusoidal vector, by width.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab collisions_lab();

}  // namespace nunchi::lab
