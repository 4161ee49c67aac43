// The bytes of a file from front to back, unpacked if it is a gzip or xz archive.
//
// Memory does not grow with the file: a buffer, and what the unpacker needs (for xz its dictionary,
// at most 256 MiB; an archive that asks for more is refused).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace nunchi {

// What goes wrong is an Error that gives the reason alone ("Permission denied", "its gzip data are
// damaged"): the caller knows the file and the place that was reached.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` from its beginning and returns how many bytes it wrote: at least one if `out` has
  // room, 0 at the end of the file and from then on.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Bytes of the file itself that were taken so far, for a look at the progress.
  virtual std::int64_t consumed() const = 0;
};

// The file as it is. Anything that can be read in order will do, a pipe too; not a folder.
std::unique_ptr<ByteStream> open_raw(const std::filesystem::path& path);

// The file unpacked. Its first bytes decide, not its name: gzip (any number of members, zeros after
// the last are padding), xz (any number of streams), or as it is. Other archives (zstd, bzip2, zip)
// are refused by name rather than taken for text.
std::unique_ptr<ByteStream> open_unpacked(const std::filesystem::path& path);

}  // namespace nunchi
