// A whole file as read-only memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace nunchi {

// Owns the mapping; the bytes live as long as it does. Movable, not copyable.
class MappedFile {
 public:
  // Throws Error when `path` is missing, unreadable or not a regular file. An empty file has no
  // bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nunchi
