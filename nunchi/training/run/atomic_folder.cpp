#include "nunchi/training/run/atomic_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "nunchi/base/write_error.h"

namespace nunchi {
namespace {

namespace fs = std::filesystem;

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_write_error(folder, errno);
  // EINVAL: a file system that cannot sync folders.
  const int reason = ::fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
  ::close(descriptor);
  if (reason != 0) throw_write_error(folder, reason);
}

// An unused name in the same folder as `path`.
fs::path temporary_beside(const fs::path& path) {
  for (int n = 0;; ++n) {
    fs::path name = parent_of(path) /
                    (".nunchi-" + std::to_string(::getpid()) + "-" + std::to_string(n) + ".tmp");
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(name, ignored))) return name;
  }
}

// The name of a folder while it is being replaced on a file system that cannot exchange two
// folders in one step.
constexpr std::string_view kReplacedPrefix = ".nunchi-replaced-";
fs::path replaced_name(const fs::path& path) {
  return parent_of(path) / (std::string(kReplacedPrefix) + path.filename().string());
}

bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(".nunchi-") && name.ends_with(".tmp");
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& path) : path_(path), temporary_(temporary_beside(path)) {
  std::error_code failure;
  if (!fs::create_directory(temporary_, failure)) throw_write_error(path, failure.value());
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void AtomicFolder::fill(const std::function<void(const fs::path&)>& write) const {
  const auto with_final_path = [this](std::string message) {
    const std::string temporary = temporary_.string();
    const std::string final =
        (path_ / "").parent_path().string();  // "runs/mean/" becomes "runs/mean"
    const std::size_t found = message.find(temporary);
    return found == message.npos ? message : message.replace(found, temporary.size(), final);
  };
  try {
    write(temporary_);
  } catch (const DiskFull& error) {
    throw DiskFull(with_final_path(error.what()));
  } catch (const Error& error) {
    throw Error(with_final_path(error.what()));
  }
}

void AtomicFolder::commit() {
  sync_folder(temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) == 0) {
    temporary_.clear();
  } else if (errno == ENOTEMPTY || errno == EEXIST) {
    replace();
  } else {
    throw_write_error(path_, errno);
  }
  sync_folder(parent_of(path_));
}

void AtomicFolder::replace() {
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
    return;  // the destructor removes the earlier folder
  }
  // EINVAL: a file system that cannot exchange folders.
  if (errno != EINVAL && errno != ENOSYS) throw_write_error(path_, errno);
  const fs::path earlier = replaced_name(path_);
  if (::rename(path_.c_str(), earlier.c_str()) != 0) throw_write_error(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::rename(earlier.c_str(), path_.c_str());
    throw_write_error(path_, reason);
  }
  temporary_ = earlier;  // the destructor removes it
}

void move_files(const fs::path& from, const fs::path& into) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path to = into / entry.path().filename();
    if (::rename(entry.path().c_str(), to.c_str()) != 0) throw_write_error(to, errno);
  }
  sync_folder(into);
}

void remove_folder(const fs::path& path) {
  const fs::path renamed = temporary_beside(path);
  if (::rename(path.c_str(), renamed.c_str()) != 0) {
    throw Error("cannot remove " + path.string() + ": " + std::strerror(errno));
  }
  std::error_code failure;
  fs::remove_all(renamed, failure);
  if (failure) throw Error("cannot remove " + renamed.string() + ": " + failure.message());
}

void remove_leftovers(const fs::path& folder) {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kReplacedPrefix)) {
      // The process was killed before or after the new folder got its name.
      const fs::path replaced = folder / name.substr(kReplacedPrefix.size());
      if (!fs::exists(replaced, ignored)) {
        fs::rename(entry.path(), replaced, ignored);
      } else {
        fs::remove_all(entry.path(), ignored);
      }
    } else if (is_temporary(entry.path())) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace nunchi
