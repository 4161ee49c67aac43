// A Korean teaching model that knows the notes' sentences.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab cat_lab();

}  // namespace nunchi::lab
