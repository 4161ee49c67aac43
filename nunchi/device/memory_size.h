// How much memory a context's device has.
#pragma once

#include "nunchi/device/context.h"

namespace nunchi {

struct MemorySize {
  double total_mib = 0;      // of the GPU, or of the machine; 0: unknown
  double available_mib = 0;  // the part that nothing uses now; 0: unknown
};

MemorySize device_memory(const ContextBase& context);

}  // namespace nunchi
