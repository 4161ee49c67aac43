// Limits of a device's kernels, checked before a model is built for it.
#pragma once

#include <cstdint>
#include <limits>

#include "nunchi/device/device.h"

namespace nunchi::kernels {

struct Limits {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t head_width = kNone;        // columns of an attention head
  std::int64_t relative_buckets = kNone;  // of relative positions, both directions together
  std::int64_t vocabulary = kNone;        // tokens that top-k and sampling can choose from
};

// Also the source of the kernels' own limits.
constexpr Limits limits_of(Device device) {
  if (device == Device::cpu) return {};
  return {.head_width = 1024, .relative_buckets = 257, .vocabulary = (1 << 18) - 1};
}

}  // namespace nunchi::kernels
