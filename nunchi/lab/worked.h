// The notes' own small numbers, computed again, and where they do not follow from one another.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab worked_lab();

}  // namespace nunchi::lab
