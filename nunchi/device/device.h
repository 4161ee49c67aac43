// Where tensors live and kernels run.
#pragma once

#include <cstdint>

namespace nunchi {

enum class Device : std::uint8_t { cpu, cuda };

constexpr const char* name_of(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

// The type that models on a context compute in.
enum class Precision : std::uint8_t { f32, bf16 };

constexpr const char* name_of(Precision precision) {
  return precision == Precision::f32 ? "f32" : "bf16";
}

}  // namespace nunchi
