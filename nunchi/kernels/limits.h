// What the kernels of a device cannot do: known before a model is made for it.
#pragma once

#include <cstdint>
#include <limits>

#include "nunchi/device/device.h"

namespace nunchi::kernels {

struct Limits {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t head_width = kNone;        // columns of an attention head
  std::int64_t relative_buckets = kNone;  // of relative positions, both directions together
  std::int64_t vocabulary = kNone;        // tokens of which the likeliest, or one, is chosen
};

// The kernels themselves take their limits from here.
constexpr Limits limits_of(Device device) {
  if (device == Device::cpu) return {};
  return {.head_width = 1024, .relative_buckets = 257, .vocabulary = (1 << 18) - 1};
}

}  // namespace nunchi::kernels
