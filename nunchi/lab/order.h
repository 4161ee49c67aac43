// Whether attention knows the order of words, without and with positions.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab order_lab();

}  // namespace nunchi::lab
