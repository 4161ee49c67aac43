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
// one sentence that names the file and the tensor. The file may be truncated, overwritten or
// removed at any time: values are read with checks, not mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/base/random_access_file.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi {

// A tensor of a file. It has at most 8 dimensions, none for a scalar; a dimension may be 0.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  // of its first byte in the file
  std::uint64_t bytes = 0;

  std::size_t elements() const { return static_cast<std::size_t>(bytes / size_of(dtype)); }
};

// A file that has passed every check. Movable.
class SafetensorsFile {
 public:
  // Reads the header only. Throws Error when the file is missing or breaks a rule.
  static SafetensorsFile open(const std::filesystem::path& path);
  explicit SafetensorsFile(RandomAccessFile file);

  // In the header's order.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Null if the file has no such tensor.
  const StoredTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Reads the values of one of tensors(), whose type must be T. Throws Error when the file has
  // become shorter or cannot be read.
  template <class T>
  std::vector<T> values(const StoredTensor& tensor) const {
    return file_.read_values<T>(tensor.offset, tensor.bytes / sizeof(T));
  }
  // The same for the bytes of a tensor or a part of it, into memory of the caller.
  void read(const StoredTensor& tensor, std::span<std::byte> into, std::uint64_t first = 0) const {
    file_.read(tensor.offset + first, into);
  }
  // Throws Error when the file was written to after it was opened; callers check this after they
  // have read the values.
  void check_unchanged() const { file_.check_unchanged(); }

 private:
  RandomAccessFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> by_name_;  // indices into tensors_, in the order of the names
  std::map<std::string, std::string> metadata_;
};

// A tensor to write.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Writes the entries in the given order, all or nothing (see AtomicFile); the data starts at a
// multiple of 64 bytes. The same arguments give the same file. Throws Error, before anything is
// written, for entries that the reader would refuse.
void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace nunchi
