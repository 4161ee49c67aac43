// Any bytes: parse_npy() throws an Error or returns a non-empty matrix of finite
// numbers.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nunchi/base/error.h"
#include "nunchi/data/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const nunchi::Features features =
        nunchi::parse_npy(nunchi::RandomAccessFile(std::as_bytes(std::span(data, size)), "f"));
    if (features.rows() < 1 || features.width < 1) __builtin_trap();
    for (const float value : features.values) {
      if (!std::isfinite(value)) __builtin_trap();
    }
  } catch (const nunchi::Error&) {
  }
  return 0;
}
