// A label that the first or the last word decides: sinusoidal against learned positions.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab places_lab();

}  // namespace nunchi::lab
