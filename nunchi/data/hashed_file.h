// The frame that the files of pairs and of features share. Such a file is mapped and read as it is:
//
//   64 bytes   a header that names the format, padded with zeros
//   values     padded with zeros to a multiple of 8 bytes
//   index      tables that locate the values
//   footer     words of 8 bytes: the magic number first, the digest of the index and of the rest of
//              the footer last
//
// Opening a file checks all but the values, which have a digest of their own.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "nunchi/base/atomic_file.h"
#include "nunchi/data/content_hash.h"

namespace nunchi {

static_assert(std::endian::native == std::endian::little, "the files are mapped as they are");

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

// Checks such a file and gives access to its parts. `bytes` are those of the file, at an address
// that is a multiple of 8; they must outlive the views.
class HashedFileReader {
 public:
  // Throws Error when the header is wrong. `display_name`: the file in errors.
  HashedFileReader(std::span<const std::byte> bytes, std::string display_name,
                   const HashedFormat& format);

  // Throws Error with this problem unless `holds`.
  void check(bool holds, const char* problem) const;

  // Throws Error when the magic number is wrong; the rest is not checked.
  template <HashedFooter Footer>
  Footer footer() const {
    check(bytes_.size() >= HashedFormat::kHeaderBytes + 8 + sizeof(Footer), "its size is wrong");
    Footer footer;
    std::memcpy(&footer, bytes_.data() + bytes_.size() - sizeof footer, sizeof footer);
    check(footer.magic == Footer().magic, "its footer is wrong");
    return footer;
  }
  // Throws Error unless the index, from byte `begin` up to the footer at byte `end`, is intact.
  template <HashedFooter Footer>
  void check_index(const Footer& footer, std::uint64_t begin, std::uint64_t end) const {
    check(footer.file_bytes == bytes_.size() && end + sizeof footer == bytes_.size(),
          "its counts do not match its size");
    const std::uint64_t hashed = end + sizeof footer - sizeof footer.index_digest - begin;
    check(ContentHash().update(bytes_.subspan(begin, hashed)).digest() == footer.index_digest,
          "its index is damaged");
  }

  // A view of `count` values at byte `begin`, a multiple of 8.
  template <class T>
  std::span<const T> values_at(std::uint64_t begin, std::uint64_t count) const {
    return {reinterpret_cast<const T*>(bytes_.data() + begin), static_cast<std::size_t>(count)};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string display_name_;
  HashedFormat format_;
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
