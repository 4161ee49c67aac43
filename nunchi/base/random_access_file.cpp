#include "nunchi/base/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw Error("cannot read " + name + ": " + why);
}

WriteStamp stamp_of(const struct stat& status) {
  return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace

RandomAccessFile::RandomAccessFile(const std::filesystem::path& path) : name_(path.string()) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; it is refused below.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(name_, std::strerror(errno));
  struct stat status {};
  const int failure = ::fstat(descriptor_, &status) != 0 ? errno : 0;
  if (failure == 0 && S_ISREG(status.st_mode)) {
    opened_ = stamp_of(status);
    return;
  }
  ::close(std::exchange(descriptor_, -1));
  fail(name_, failure != 0 ? std::strerror(failure) : "it is not a plain file");
}

RandomAccessFile::RandomAccessFile(std::span<const std::byte> memory, std::string name)
    : memory_(memory), name_(std::move(name)), opened_{.bytes = std::ssize(memory)} {}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(other.memory_),
      name_(std::move(other.name_)),
      opened_(other.opened_) {}

RandomAccessFile& RandomAccessFile::operator=(RandomAccessFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  std::swap(name_, other.name_);
  std::swap(opened_, other.opened_);
  return *this;
}

void RandomAccessFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > size() || into.size() > size() - offset) fail(name_, "it is too short");
  if (descriptor_ < 0) {
    std::ranges::copy(memory_.subspan(offset, into.size()), into.begin());
    return;
  }
  while (!into.empty()) {
    const ssize_t count =
        ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(name_, std::strerror(errno));
    if (count == 0) fail(name_, "it was cut short while it was in use");
    offset += static_cast<std::uint64_t>(count);
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

WriteStamp RandomAccessFile::stamp() const {
  if (descriptor_ < 0) return opened_;
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(name_, std::strerror(errno));
  return stamp_of(status);
}

void RandomAccessFile::check_unchanged() const {
  if (stamp() != opened_) fail(name_, "it was changed while it was read; try again");
}

std::string read_small_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const RandomAccessFile file(path);
  if (file.size() > max_bytes) {
    throw Error(file.name() + ": " + std::to_string(file.size()) + " bytes are too many; at most " +
                std::to_string(max_bytes) + " are allowed.");
  }
  std::string contents(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(contents)));
  file.check_unchanged();
  return contents;
}

}  // namespace nunchi
