// Preloaded into the program (LD_PRELOAD), makes one of its system calls fail. Counted are the
// calls that create, write, sync, truncate or rename files and folders below a folder.
//
//   NUNCHI_FAULT_FOLDER       the folder, an absolute path
//   NUNCHI_FAULT_CALL         the number of the call that fails, from 1; 0: none
//   NUNCHI_FAULT_ERROR        its error number
//   NUNCHI_FAULT_LOG          a file that receives the name of each counted call, a line each
//   NUNCHI_FAULT_NO_EXCHANGE  if set, RENAME_EXCHANGE is not supported, as on some file systems
//
// A write that fails because the disk is full first writes half of its bytes, as the system does.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

struct Settings {
  std::string folder = variable("NUNCHI_FAULT_FOLDER");
  long failing_call = std::atol(variable("NUNCHI_FAULT_CALL").c_str());
  int error = std::atoi(variable("NUNCHI_FAULT_ERROR").c_str());
  std::string log = variable("NUNCHI_FAULT_LOG");
  bool no_exchange = !variable("NUNCHI_FAULT_NO_EXCHANGE").empty();
};

const Settings& settings() {
  static const Settings read;
  return read;
}

std::atomic<long> calls = 0;
std::atomic<bool> disk_is_full = false;  // the next write fails

bool is_below_folder(std::string_view path) {
  const std::string& folder = settings().folder;
  return !folder.empty() && path.starts_with(folder);
}

bool is_below_folder(int file) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length > 0 && is_below_folder(std::string_view(path, static_cast<std::size_t>(length)));
}

bool is_below_folder(int folder, const char* path) {
  return path[0] == '/' || folder == AT_FDCWD ? is_below_folder(path) : is_below_folder(folder);
}

// Counts a call; true if it must fail.
bool fails(const char* name) {
  if (!settings().log.empty()) {
    const int log = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, settings().log.c_str(),
                                               O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    const std::string line = std::string(name) + "\n";
    ::syscall(SYS_write, log, line.data(), line.size());
    ::close(log);
  }
  if (++calls != settings().failing_call) return false;
  errno = settings().error;
  return true;
}

int creating_open(int folder, const char* path, int flags, mode_t mode) {
  const bool counted = (flags & O_CREAT) != 0 && is_below_folder(folder, path);
  if (counted && fails("open")) return -1;
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

int rename_any(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (is_below_folder(to_folder, to)) {
    if (fails("rename")) return -1;
    if ((flags & RENAME_EXCHANGE) != 0 && settings().no_exchange) {
      errno = EINVAL;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

mode_t mode_argument(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, std::size_t count) {
  if (is_below_folder(file)) {
    if (disk_is_full.exchange(false)) {
      errno = ENOSPC;
      return -1;
    }
    if (fails("write")) {
      if (errno != ENOSPC || count < 2) return -1;
      disk_is_full = true;
      count /= 2;
    }
  }
  return ::syscall(SYS_write, file, bytes, count);
}

int fsync(int file) {
  if (is_below_folder(file) && fails("fsync")) return -1;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

int fdatasync(int file) {
  if (is_below_folder(file) && fails("fdatasync")) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

int ftruncate(int file, off_t length) noexcept {
  if (is_below_folder(file) && fails("ftruncate")) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, file, length));
}

int truncate(const char* path, off_t length) noexcept {
  if (is_below_folder(AT_FDCWD, path) && fails("truncate")) return -1;
  return static_cast<int>(::syscall(SYS_truncate, path, length));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (is_below_folder(AT_FDCWD, path) && fails("mkdir")) return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int rename(const char* from, const char* to) noexcept {
  return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return rename_any(from_folder, from, to_folder, to, 0);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  return rename_any(from_folder, from, to_folder, to, flags);
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return creating_open(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return creating_open(folder, path, flags, mode);
}

}  // extern "C"
