// Any bytes: SafetensorsFile throws an Error, or all its tensors can be read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nunchi/base/error.h"
#include "nunchi/models/format/safetensors.h"

namespace {

void read(std::span<const std::uint8_t> bytes) {
  std::optional<nunchi::SafetensorsFile> file;
  try {
    file.emplace(nunchi::RandomAccessFile(std::as_bytes(bytes), "fuzz"));
  } catch (const nunchi::Error&) {
    return;
  }
  // An accepted file must be readable: an exception from here on ends the program.
  for (const nunchi::StoredTensor& tensor : file->tensors()) {
    if (file->values<std::byte>(tensor).size() != tensor.bytes) __builtin_trap();
    if (file->find(tensor.name) != &tensor) __builtin_trap();
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
