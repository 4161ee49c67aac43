// Where tensors live and kernels run.
#pragma once

#include <cstdint>

namespace nunchi {

enum class Device : std::uint8_t { cpu, cuda };

constexpr const char* name_of(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

}  // namespace nunchi
