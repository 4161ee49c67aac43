// Tensors on disk in the safetensors format: names, shapes and bytes, nothing executable.
//
//   8 bytes   N, the header's length, little-endian
//   N bytes   the header: a JSON object in UTF-8, padded with spaces if need be,
//               {"__metadata__": {"key": "text", ...},
//                "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//   the rest  the data: little-endian, row-major; offsets count from its first byte
//
// The tensors cover the data without gaps or overlaps, in any order, at any alignment.
//
// The reader trusts nothing: it checks every number against the file before it uses it, needs
// memory in proportion to the header only, and refuses a file that breaks a rule with an Error of
// one sentence that names the file and the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/base/mapped_file.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi {

// A tensor of a file. It has at most 8 dimensions, none for a scalar; a dimension may be 0.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // may be unaligned: copy values with memcpy
};

// A file that has passed every check. Movable; moving does not move the entries' bytes.
class SafetensorsFile {
 public:
  // Maps the file. The entries' bytes are valid as long as the result lives.
  static SafetensorsFile open(const std::filesystem::path& path);

  // In the header's order.
  std::span<const SafetensorsEntry> entries() const { return entries_; }
  // Null if the file has no such tensor.
  const SafetensorsEntry* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  friend SafetensorsFile parse_safetensors(std::span<const std::byte>, const std::string&);
  SafetensorsFile() = default;

  std::optional<MappedFile> mapping_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::size_t> by_name_;  // indices into entries_, in the order of the names
  std::map<std::string, std::string> metadata_;
};

// The same for a file in memory, which errors call `display_name`. `bytes` must outlive the result.
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes,
                                  const std::string& display_name);

// Writes the entries in the given order, all or nothing (see AtomicFile); the data starts at a
// multiple of 64 bytes. The same arguments give the same file. Throws Error, before anything is
// written, for entries that the reader would refuse.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace nunchi
