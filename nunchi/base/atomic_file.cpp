#include "nunchi/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

// The result of a system call, called again when a signal came in between.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

void AtomicFile::Descriptor::close() {
  if (value >= 0) ::close(value);
  value = -1;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  folder_.value = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_.value < 0) fail(errno);
  const std::string prefix = ".nunchi-" + std::to_string(::getpid()) + "-";
  for (int n = 0; file_.value < 0; ++n) {
    temporary_ = prefix + std::to_string(n) + ".tmp";
    // 0666: the user's umask decides, as for any other file.
    file_.value =
        ::openat(folder_.value, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_.value < 0 && errno != EEXIST) fail(errno);
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.value, temporary_.c_str(), 0);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written =
        uninterrupted([&] { return ::write(file_.value, bytes.data(), bytes.size()); });
    if (written < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (uninterrupted([&] { return ::fsync(file_.value); }) != 0) fail(errno);
  const std::string name = path_.filename().string();
  if (::renameat(folder_.value, temporary_.c_str(), folder_.value, name.c_str()) != 0) fail(errno);
  temporary_.clear();
  file_.close();
  // EINVAL: a file system that has no way to sync a folder.
  const int synced = uninterrupted([&] { return ::fsync(folder_.value); });
  if (synced != 0 && errno != EINVAL) fail(errno);
}

void AtomicFile::fail(int reason) const {
  throw Error("cannot write " + path_.string() + ": " + std::strerror(reason));
}

}  // namespace nunchi
