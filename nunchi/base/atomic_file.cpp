#include "nunchi/base/atomic_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "nunchi/base/write_error.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

// Repeats a system call while signals interrupt it, and returns its result.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Replaces a link, or a chain of them, by its target, which need not exist. Returns false for a
// link in /proc: it refers to an open file, not to a name.
bool follow_links(fs::path& path) {
  constexpr int kMaxLinks = 40;  // as in Linux; ends a cycle of links
  std::error_code failure;
  for (int i = 0; i < kMaxLinks; ++i) {
    const fs::path link_target = fs::read_symlink(path, failure);
    if (failure) return true;  // not a link, or an error that opening it reports
    struct statfs file_system {};
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (::statfs(folder.c_str(), &file_system) == 0 && file_system.f_type == PROC_SUPER_MAGIC)
      return false;
    path = path.parent_path() / link_target;  // an absolute target replaces the path
  }
  return true;
}

constexpr const char *kTemporaryPrefix = ".nunchi-", *kTemporarySuffix = ".tmp";

// Whether the name in the folder belongs to the open file.
bool names_file(int folder, const std::string& name, int file) {
  struct stat named {
  }, opened{};
  return ::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(file, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

}  // namespace

void AtomicFile::Descriptor::close() {
  if (value >= 0) ::close(value);
  value = -1;
}

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(path) {
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (!exists && errno == ELOOP) fail(ELOOP);
  if (exists && S_ISDIR(existing.st_mode)) fail(EISDIR);
  if ((exists && !S_ISREG(existing.st_mode)) || !follow_links(target_)) {
    open_directly();
    return;
  }
  make_temporary();
  if (!exists) return;
  // Without permission to change the owner, the new file belongs to the user. Changing the owner
  // can change the mode, so the mode is set afterwards.
  [[maybe_unused]] const int ignored = ::fchown(file_.value, existing.st_uid, existing.st_gid);
  if (::fchmod(file_.value, existing.st_mode & 0777u) == 0) return;
  const int reason = errno;
  ::unlinkat(folder_.value, temporary_.c_str(), 0);
  fail(reason);
}

void AtomicFile::open_directly() {
  // Appends: /dev/stdout may be a file that has content already.
  file_.value = uninterrupted(
      [&] { return ::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC); });
  if (file_.value < 0) fail(errno);
}

void AtomicFile::make_temporary() {
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  folder_.value = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_.value < 0) fail(errno);
  const std::string prefix = kTemporaryPrefix + std::to_string(::getpid()) + "-";
  for (int n = 0;; ++n) {
    temporary_ = prefix + std::to_string(n) + kTemporarySuffix;
    // 0666: the user's umask decides, as for any other file.
    file_.value =
        ::openat(folder_.value, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_.value < 0 && errno != EEXIST) {
      const int reason = errno;
      temporary_.clear();
      fail(reason);
    }
    if (file_.value >= 0 && lock_temporary()) return;
    file_.close();
  }
}

bool AtomicFile::lock_temporary() const {
  // Other errors: a file system without locks. There, no file is taken for an abandoned one.
  if (::flock(file_.value, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  return names_file(folder_.value, temporary_, file_.value);
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
  // EINVAL, EROFS: a terminal, a pipe or a device cannot be synced.
  const bool synced = uninterrupted([&] { return ::fsync(file_.value); }) == 0;
  if (!synced && !(folder_.value < 0 && (errno == EINVAL || errno == EROFS))) fail(errno);
  if (folder_.value >= 0) {
    const std::string name = target_.filename().string();
    if (::renameat(folder_.value, temporary_.c_str(), folder_.value, name.c_str()) != 0) {
      fail(errno);
    }
    temporary_.clear();
  }
  file_.close();
  if (folder_.value < 0) return;
  // EINVAL: a file system that cannot sync folders.
  if (uninterrupted([&] { return ::fsync(folder_.value); }) != 0 && errno != EINVAL) fail(errno);
}

fs::path AtomicFile::temporary() const {
  return temporary_.empty() ? fs::path() : target_.parent_path() / temporary_;
}

void AtomicFile::fail(int reason) const { throw_write_error(path_, reason); }

void remove_abandoned_files(const fs::path& folder) {
  const fs::path listed = folder.empty() ? fs::path(".") : folder;
  std::error_code failure;
  for (fs::directory_iterator entry(listed, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) continue;
    const int file = ::open(entry->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    // A living process holds the lock of its file.
    if (::flock(file, LOCK_EX | LOCK_NB) == 0 && names_file(AT_FDCWD, entry->path(), file)) {
      ::unlink(entry->path().c_str());
    }
    ::close(file);
  }
}

}  // namespace nunchi
