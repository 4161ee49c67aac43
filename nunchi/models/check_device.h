// Whether the kernels of a device can serve a model: said in one sentence before anything is read,
// tokenised or allocated for it, and not at its first step.
#pragma once

#include <string>

#include "nunchi/device/device.h"
#include "nunchi/models/family.h"

namespace nunchi {

// Throws Error, naming `where`, for options that ask for more than the device's kernels can do
// (kernels/limits.h).
void check_device(const FamilyConfig& config, Device device, const std::string& where);
// The same for a model, whose vocabulary is known.
void check_device(const Model& model, Device device, const std::string& where);

}  // namespace nunchi
