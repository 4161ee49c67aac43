// A tensor times a number.
#pragma once

#include "nunchi/autograd/variable.h"

namespace nunchi {

Variable scale(const Variable& x, double factor);

}  // namespace nunchi
