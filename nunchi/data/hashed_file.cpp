#include "nunchi/data/hashed_file.h"

#include <utility>

#include "nunchi/base/error.h"

namespace nunchi {

std::array<std::byte, HashedFormat::kHeaderBytes> HashedFormat::header_bytes() const {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), header.data(), header.size());
  return bytes;
}

HashedFileReader::HashedFileReader(std::span<const std::byte> bytes, std::string display_name,
                                   const HashedFormat& format)
    : bytes_(bytes), display_name_(std::move(display_name)), format_(format) {
  check(bytes.size() >= HashedFormat::kHeaderBytes && bytes.size() % 8 == 0, "its size is wrong");
  const auto header = format.header_bytes();
  check(std::memcmp(bytes.data(), header.data(), header.size()) == 0, "its header is wrong");
}

void HashedFileReader::check(bool holds, const char* problem) const {
  if (holds) return;
  throw Error(display_name_ + " is not a valid file of " + std::string(format_.contents) + ": " +
              problem + ".");
}

HashedFileWriter::HashedFileWriter(const std::filesystem::path& path, const HashedFormat& format)
    : file_(path) {
  write(format.header_bytes());
}

void HashedFileWriter::write_values(std::span<const std::byte> bytes) {
  values_.update(bytes);
  write(bytes);
}

void HashedFileWriter::write_index(std::span<const std::byte> bytes) {
  const std::array<std::byte, 8> zeros{};
  write(std::span(zeros).first(padded_to_8(written_) - written_));
  index_.update(bytes);
  write(bytes);
}

void HashedFileWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

}  // namespace nunchi
