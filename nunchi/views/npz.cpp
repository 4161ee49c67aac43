#include "nunchi/views/npz.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "nunchi/base/error.h"
#include "nunchi/text/unicode.h"

namespace nunchi {
namespace {

static_assert(std::endian::native == std::endian::little);

void append_number(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>((value >> (8 * i)) & 0xFF);
}

// The header of an .npy file, version 1.0, padded so that the data start at a multiple of 64.
std::string npy_header(const std::string& dtype, std::span<const std::int64_t> shape) {
  std::string dictionary = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t size : shape) dictionary += std::to_string(size) + ",";
  dictionary += "), }";
  constexpr std::size_t kPrefix = 10;
  const std::size_t padding = 63 - (kPrefix + dictionary.size()) % 64;
  dictionary += std::string(padding, ' ') + "\n";
  std::string header("\x93NUMPY\x01\x00", 8);
  append_number(header, dictionary.size(), 2);
  return header + dictionary;
}

template <class T>
std::string npy_of(const char* dtype, std::span<const std::int64_t> shape,
                   std::span<const T> values) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  if (elements != std::ssize(values)) {
    throw Error("npz: an array's shape does not fit its values (internal error).");
  }
  std::string npy = npy_header(dtype, shape);
  npy.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return npy;
}

// Raw deflate, as ZIP stores it.
std::string deflated(const std::string& data) {
  z_stream stream{};
  constexpr int kRaw = -MAX_WBITS, kMemory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw Error("npz: zlib could not be started.");
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error("npz: zlib could not compress an array.");
  return out;
}

}  // namespace

void NpzWriter::add(std::string_view name, std::span<const std::int64_t> shape,
                    std::span<const float> values) {
  add_member(name, npy_of("<f4", shape, values));
}

void NpzWriter::add(std::string_view name, std::span<const std::int64_t> shape,
                    std::span<const std::int32_t> values) {
  add_member(name, npy_of("<i4", shape, values));
}

void NpzWriter::add(std::string_view name, std::span<const std::string> texts) {
  std::vector<std::u32string> decoded;
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    std::u32string& characters = decoded.emplace_back();
    for (std::string_view rest = text; !rest.empty();) characters += take_character(rest);
    longest = std::max(longest, characters.size());
  }
  const std::int64_t count = std::ssize(texts);
  std::string npy = npy_header("<U" + std::to_string(longest), std::span(&count, 1));
  for (std::u32string& characters : decoded) {
    characters.resize(longest, U'\0');
    npy.append(reinterpret_cast<const char*>(characters.data()), longest * sizeof(char32_t));
  }
  add_member(name, npy);
}

void NpzWriter::add_member(std::string_view name, const std::string& npy) {
  constexpr std::uint32_t kLocal = 0x04034B50, kCentral = 0x02014B50;
  constexpr int kVersion = 20, kUtf8Names = 1 << 11, kDeflate = 8;
  constexpr std::uint64_t kTime = 0, kDate = (1 << 5) | 1;  // 1980-01-01: the same bytes each time
  constexpr std::size_t kMost = 0xFFFFFFFF;
  const std::string file = std::string(name) + ".npy", data = deflated(npy);
  if (npy.size() > kMost || archive_.size() + data.size() + directory_.size() > kMost ||
      members_ >= 0xFFFF) {
    throw Error("the values do not fit into an .npz file: choose a layer or a shorter text.");
  }
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(npy.data()), static_cast<uInt>(npy.size()));
  const std::size_t offset = archive_.size();
  const auto append_common = [&](std::string& to) {
    append_number(to, kVersion, 2);
    append_number(to, kUtf8Names, 2);
    append_number(to, kDeflate, 2);
    append_number(to, kTime, 2);
    append_number(to, kDate, 2);
    append_number(to, crc, 4);
    append_number(to, data.size(), 4);
    append_number(to, npy.size(), 4);
    append_number(to, file.size(), 2);
    append_number(to, 0, 2);  // no extra field
  };
  append_number(archive_, kLocal, 4);
  append_common(archive_);
  archive_ += file + data;
  append_number(directory_, kCentral, 4);
  append_number(directory_, kVersion, 2);
  append_common(directory_);
  append_number(directory_, 0, 2);  // no comment
  append_number(directory_, 0, 2);  // the only disk
  append_number(directory_, 0, 2);  // attributes
  append_number(directory_, 0, 4);
  append_number(directory_, offset, 4);
  directory_ += file;
  ++members_;
}

std::string NpzWriter::finish() {
  constexpr std::uint32_t kEnd = 0x06054B50;
  const std::size_t offset = archive_.size();
  archive_ += directory_;
  append_number(archive_, kEnd, 4);
  append_number(archive_, 0, 4);  // the only disk
  append_number(archive_, static_cast<std::uint64_t>(members_), 2);
  append_number(archive_, static_cast<std::uint64_t>(members_), 2);
  append_number(archive_, directory_.size(), 4);
  append_number(archive_, offset, 4);
  append_number(archive_, 0, 2);  // no comment
  return std::move(archive_);
}

}  // namespace nunchi
