// Trained on short sentences, tested on long ones, with every kind of position.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab length_lab();

}  // namespace nunchi::lab
