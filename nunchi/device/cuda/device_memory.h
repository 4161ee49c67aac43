// The memory of a GPU as a source for an arena.
#pragma once

#include <memory>

#include "nunchi/device/arena.h"

namespace nunchi {

// Reserves as many addresses as the GPU has memory and backs them on demand. Throws Error when the
// device cannot be used.
std::unique_ptr<MemorySource> make_device_memory(int device);

}  // namespace nunchi
