// Any bytes: parse_safetensors() throws an Error, or all its spans are inside of the bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/models/format/safetensors.h"

namespace {

void read(std::span<const std::uint8_t> bytes) {
  try {
    const auto file = nunchi::parse_safetensors(std::as_bytes(bytes), "fuzz");
    volatile unsigned sum = 0;  // keeps the compiler from removing the reads
    for (const nunchi::SafetensorsEntry& entry : file.entries()) {
      for (const std::byte byte : entry.bytes) sum = sum + std::to_integer<unsigned>(byte);
      if (file.find(entry.name) != &entry) __builtin_trap();
    }
  } catch (const nunchi::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read({data, size});
  // After most mutations the header's length is wrong. Correcting it lets them reach later checks.
  if (size >= 8) {
    std::vector<std::uint8_t> file(data, data + size);
    const auto last_brace = std::find(file.rbegin(), file.rend() - 8, '}').base();
    const std::size_t length = static_cast<std::size_t>(last_brace - file.begin()) - 8;
    for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::uint8_t>(length >> (8 * i));
    read(file);
  }
  return 0;
}
