// The frame that the files of pairs and of features share:
//
//   64 bytes   a header that names the format, padded with zeros
//   values     padded with zeros to a multiple of 8 bytes
//   index      tables that locate the values
//   footer     words of 8 bytes: the magic number first, the digest of the index and of the rest of
//              the footer last
//
// Opening a file reads the index into memory and checks all but the values, which have a digest of
// their own and are read when they are used. The file may be truncated, overwritten, replaced or
// removed meanwhile: reads are checked.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/random_access_file.h"
#include "nunchi/data/content_hash.h"

namespace nunchi {

static_assert(std::endian::native == std::endian::little,
              "numbers are stored as they are in memory");

// A footer has only fields of 8 bytes: `magic` first, then also `values_digest` and `file_bytes`,
// and `index_digest` last.
template <class Footer>
concept HashedFooter = std::is_trivially_copyable_v<Footer> && sizeof(Footer) % 8 == 0 &&
                       requires(Footer footer) {
  { footer.magic } -> std::same_as<std::uint64_t&>;
  { footer.values_digest } -> std::same_as<Digest&>;
  { footer.file_bytes } -> std::same_as<std::uint64_t&>;
  { footer.index_digest } -> std::same_as<Digest&>;
};

struct HashedFormat {
  std::string_view contents;  // "pairs", for errors
  std::string_view header;    // at most 64 bytes

  static constexpr std::size_t kHeaderBytes = 64;
  std::array<std::byte, kHeaderBytes> header_bytes() const;
};

constexpr std::uint64_t padded_to_8(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// Checks such a file and reads its parts.
class HashedFileReader {
 public:
  // Throws Error when the header is wrong. `file` must outlive the reader.
  HashedFileReader(const RandomAccessFile& file, const HashedFormat& format);

  // Throws Error with this problem unless `holds`.
  void check(bool holds, const char* problem) const;

  // Throws Error when the magic number is wrong; the rest is not checked.
  template <HashedFooter Footer>
  Footer footer() const {
    check(file_.size() >= HashedFormat::kHeaderBytes + 8 + sizeof(Footer), "its size is wrong");
    Footer footer;
    file_.read(file_.size() - sizeof footer, std::as_writable_bytes(std::span(&footer, 1)));
    check(footer.magic == Footer().magic, "its footer is wrong");
    return footer;
  }
  // Throws Error unless a file whose footer begins at byte `begin` has this size. To be called
  // before the tables are read.
  template <HashedFooter Footer>
  void check_size(const Footer& footer, std::uint64_t begin) const {
    check(footer.file_bytes == file_.size() && begin + sizeof footer == file_.size(),
          "its counts do not match its size");
  }
  // The table of `count` values at byte `begin`. The tables of the index are read once each, in
  // order, and then checked.
  template <class T>
  std::vector<T> table(std::uint64_t begin, std::uint64_t count) {
    auto values = file_.read_values<T>(begin, padded_to_8(count * sizeof(T)) / sizeof(T));
    index_.update(std::as_bytes(std::span(values)));
    values.resize(static_cast<std::size_t>(count));
    return values;
  }
  // Throws Error unless the tables and the footer have the right digest.
  template <HashedFooter Footer>
  void check_index(const Footer& footer) {
    const auto bytes = std::as_bytes(std::span(&footer, 1));
    index_.update(bytes.first(sizeof footer - sizeof footer.index_digest));
    check(index_.digest() == footer.index_digest, "its index is damaged");
  }

 private:
  const RandomAccessFile& file_;
  HashedFormat format_;
  ContentHash index_;
};

// The values of such a file, read from the disk when they are used. Any number of threads may read
// at the same time. Movable.
class StoredValues {
 public:
  StoredValues(RandomAccessFile file, std::uint64_t bytes, const Digest& digest);

  // Reads values of type T from value `first` on. Throws Error when the file has become shorter or
  // cannot be read.
  template <class T>
  void read(std::uint64_t first, std::span<T> into) const {
    file_.read(HashedFormat::kHeaderBytes + first * sizeof(T), std::as_writable_bytes(into));
  }
  // Reads all values and compares them with their digest.
  bool are_intact() const;
  // Throws Error when the file was written to since it was opened and its values are damaged. To be
  // called between reading values and using them.
  void check_intact() const;

 private:
  RandomAccessFile file_;
  std::uint64_t bytes_;
  Digest digest_;
  // The last stamp of the file with which its values were intact.
  struct Verified {
    std::mutex mutex;
    WriteStamp stamp;
  };
  std::unique_ptr<Verified> verified_;
};

// Writes such a file: the values, then the index, then commit(), before which the file does not
// exist. Throws Error with the system's reason when it cannot be written.
class HashedFileWriter {
 public:
  HashedFileWriter(const std::filesystem::path& path, const HashedFormat& format);

  void write_values(std::span<const std::byte> bytes);
  void write_index(std::span<const std::byte> bytes);  // a multiple of 8 bytes
  // Sets the digests and the size of the file in `footer` and writes it.
  template <HashedFooter Footer>
  void commit(Footer footer) {
    footer.values_digest = values_.digest();
    footer.file_bytes = written_ + sizeof footer;
    const auto bytes = std::as_bytes(std::span(&footer, 1));
    footer.index_digest =
        index_.update(bytes.first(sizeof footer - sizeof footer.index_digest)).digest();
    write(bytes);
    file_.commit();
  }

 private:
  void write(std::span<const std::byte> bytes);

  AtomicFile file_;
  ContentHash values_, index_;
  std::uint64_t written_ = 0;  // bytes
};

}  // namespace nunchi
