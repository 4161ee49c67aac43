// Greedy search against beams: how often it fails, quality and time.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab search_lab();

}  // namespace nunchi::lab
