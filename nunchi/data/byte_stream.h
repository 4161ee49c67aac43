// The bytes of a file in order, decompressed if it is a gzip or xz archive.
//
// Memory does not grow with the file: it is a buffer and the decompressor's state (for xz a
// dictionary of at most 256 MiB; archives that need more are refused).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace nunchi {

// Throws Errors that only give the reason ("Permission denied", "its gzip data are
// damaged"); the caller adds the file and the position.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Writes bytes to the beginning of `out` and returns their number: at least one unless `out`
  // is empty or the file has ended.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Bytes of the file (compressed ones, if it is an archive) read so far, for progress reports.
  virtual std::int64_t consumed() const = 0;
};

// The file without decompression. It may be anything that can be read in order, such as a pipe, but
// not a folder.
std::unique_ptr<ByteStream> open_raw(const std::filesystem::path& path);

// The file decompressed. Its first bytes select the format, not its name: gzip (any number of
// members; zeros after the last are padding), xz (any number of streams), or plain. Other archives
// (zstd, bzip2, zip) are refused instead of being read as text.
std::unique_ptr<ByteStream> open_unpacked(const std::filesystem::path& path);

}  // namespace nunchi
