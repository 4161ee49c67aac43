// Where tensors live and kernels run.
#pragma once

#include <cstdint>

namespace nunchi {

enum class Device : std::uint8_t { cpu, cuda };

constexpr const char* name_of(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

// The type that models on a context compute in. int8: weights of 8 bits, everything else in f32;
// for inference on the CPU.
enum class Precision : std::uint8_t { f32, bf16, int8 };

constexpr const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::bf16:
      return "bf16";
    case Precision::int8:
      return "int8";
  }
  return "?";
}

}  // namespace nunchi
