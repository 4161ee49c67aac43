// Size limits of each device's kernels, checked before a model is built for the device.
#pragma once

#include <cstdint>
#include <limits>

#include "nunchi/device/device.h"

namespace nunchi::kernels {

struct Limits {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t head_width = kNone;        // columns of an attention head
  std::int64_t relative_buckets = kNone;  // buckets of relative positions, of both directions
  std::int64_t vocabulary = kNone;        // tokens that top-k and sampling can choose from
};

// The kernels take their own limits from here, too.
constexpr Limits limits_of(Device device) {
  if (device == Device::cpu) return {};
  return {.head_width = 1024, .relative_buckets = 257, .vocabulary = (1 << 18) - 1};
}

}  // namespace nunchi::kernels
