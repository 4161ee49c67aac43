#include "nunchi/data/hashed_file.h"

#include <algorithm>
#include <utility>

#include "nunchi/base/error.h"

namespace nunchi {

std::array<std::byte, HashedFormat::kHeaderBytes> HashedFormat::header_bytes() const {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), header.data(), header.size());
  return bytes;
}

HashedFileReader::HashedFileReader(const RandomAccessFile& file, const HashedFormat& format)
    : file_(file), format_(format) {
  check(file.size() >= HashedFormat::kHeaderBytes && file.size() % 8 == 0, "its size is wrong");
  std::array<std::byte, HashedFormat::kHeaderBytes> header;
  file.read(0, header);
  check(header == format.header_bytes(), "its header is wrong");
}

void HashedFileReader::check(bool holds, const char* problem) const {
  if (holds) return;
  throw Error(file_.name() + " is not a valid file of " + std::string(format_.contents) + ": " +
              problem + ".");
}

StoredValues::StoredValues(RandomAccessFile file, std::uint64_t bytes, const Digest& digest)
    : file_(std::move(file)),
      bytes_(bytes),
      digest_(digest),
      verified_(std::make_unique<Verified>()) {
  verified_->stamp = file_.opened();
}

bool StoredValues::are_intact() const {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(bytes_, std::uint64_t{1} << 20));
  ContentHash hash;
  for (std::uint64_t done = 0; done < bytes_;) {
    const auto chunk =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), bytes_ - done));
    file_.read(HashedFormat::kHeaderBytes + done, chunk);
    hash.update(chunk);
    done += chunk.size();
  }
  return hash.digest() == digest_;
}

void StoredValues::check_intact() const {
  const WriteStamp stamp = file_.stamp();
  const std::lock_guard lock(verified_->mutex);
  if (stamp == verified_->stamp) return;
  // A file can be touched, or copied over itself, without damage.
  if (!are_intact()) {
    throw Error(file_.name() + " was overwritten while it was in use and is damaged");
  }
  verified_->stamp = stamp;
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
