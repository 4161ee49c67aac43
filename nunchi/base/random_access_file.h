// Checked reads of files that other processes may truncate, overwrite or remove at any time.
//
// Files are read, never mapped: a page of a mapped file that has become shorter ends the process
// with a signal when it is touched, while a read reports the problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace nunchi {

// When a file was last written to. Removing or renaming a file does not change it.
struct WriteStamp {
  std::int64_t bytes = 0, seconds = 0, nanoseconds = 0;
  friend bool operator==(const WriteStamp&, const WriteStamp&) = default;
};

// A file that is open for reading at any position. It stays readable when it is removed or replaced
// by another file of that name. Any number of threads may read at the same time. Movable.
class RandomAccessFile {
 public:
  // Throws Error when `path` is missing, unreadable or not a regular file.
  explicit RandomAccessFile(const std::filesystem::path& path);
  // The same for bytes in memory, which must outlive the object. `name`: the file in errors.
  RandomAccessFile(std::span<const std::byte> memory, std::string name);
  ~RandomAccessFile();
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& name() const { return name_; }
  // In bytes, when the file was opened.
  std::uint64_t size() const { return static_cast<std::uint64_t>(opened_.bytes); }

  // Fills `into` with the bytes from `offset` on. Throws Error when the file has fewer bytes or
  // cannot be read.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  template <class T>
  std::vector<T> read_values(std::uint64_t offset, std::uint64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    read(offset, std::as_writable_bytes(std::span(values)));
    return values;
  }

  WriteStamp opened() const { return opened_; }
  // The file's stamp now. Equal to opened(): all reads so far returned the bytes that the file had
  // when it was opened.
  WriteStamp stamp() const;
  // Throws Error when the file was written to after it was opened.
  void check_unchanged() const;

 private:
  int descriptor_ = -1;  // -1: in memory
  std::span<const std::byte> memory_;
  std::string name_;
  WriteStamp opened_;
};

// The contents of a small file. Throws Error when it is missing, unreadable, larger than
// `max_bytes`, or changes while it is read.
inline constexpr std::uint64_t kMaxSmallFile = std::uint64_t{1} << 30;
std::string read_small_file(const std::filesystem::path& path,
                            std::uint64_t max_bytes = kMaxSmallFile);

}  // namespace nunchi
