// Checks that the kernels of a device support a model, before anything is read, tokenised or
// allocated for it.
#pragma once

#include <string>

#include "nunchi/device/device.h"
#include "nunchi/models/family.h"

namespace nunchi {

// Throws Error, naming `where`, for options beyond the limits of the device's kernels
// (kernels/limits.h).
void check_device(const ModelConfig& config, Device device, const std::string& where);
// The same for a model, whose vocabulary is known.
void check_device(const Model& model, Device device, const std::string& where);

}  // namespace nunchi
