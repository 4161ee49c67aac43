// Size limits of each device's kernels, checked before a model is built for the device.
#pragma once

#include <cstdint>
#include <limits>

#include "nunchi/device/device.h"

namespace nunchi::kernels {

struct Limits {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t head_width = kUnlimited;        // columns of an attention head
  std::int64_t relative_buckets = kUnlimited;  // buckets of relative positions, of both directions
  std::int64_t vocabulary = kUnlimited;        // tokens that top-k and sampling can choose from
};

// The kernels take their own limits from here, too.
constexpr Limits limits_of(Device device) {
  if (device == Device::cpu) return {};
  return {.head_width = 1024, .relative_buckets = 257, .vocabulary = (1 << 18) - 1};
}

}  // namespace nunchi::kernels
