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

// Failures are Errors that give the reason alone ("Permission denied", "its gzip data are
// damaged"): the caller knows the file and how far it has read.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` from its beginning and returns how many bytes it wrote: at least one unless `out`
  // is empty; 0 at the end of the file and from then on.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Bytes of the file itself that have been read so far, for progress reports.
  virtual std::int64_t consumed() const = 0;
};

// The file as it is. It may be anything that can be read in order, such as a pipe, but not a
// folder.
std::unique_ptr<ByteStream> open_raw(const std::filesystem::path& path);

// The file decompressed. Its first bytes decide, not its name: gzip (any number of members; zeros
// after the last are padding), xz (any number of streams), or plain. Other archives (zstd, bzip2,
// zip) are refused instead of being read as text.
std::unique_ptr<ByteStream> open_unpacked(const std::filesystem::path& path);

}  // namespace nunchi
