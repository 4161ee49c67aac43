// What 'it' refers to: animal or street, decided by the last word.
#pragma once

#include "nunchi/lab/lab.h"

namespace nunchi::lab {

Lab coreference_lab();

}  // namespace nunchi::lab
