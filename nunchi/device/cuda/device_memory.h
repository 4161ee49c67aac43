// The memory of a GPU as a source for an arena.
#pragma once

#include <memory>

#include "nunchi/device/arena.h"

namespace nunchi {

// Reserves as much address space as the GPU has memory and backs it on demand. Throws Error if the
// device cannot be used.
std::unique_ptr<MemorySource> make_device_memory(int device);

}  // namespace nunchi
