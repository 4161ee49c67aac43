#include "nunchi/training/run/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "nunchi/base/write_error.h"

namespace nunchi {

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file_ < 0) throw_write_error(path_, errno);
}

AppendFile::~AppendFile() { ::close(file_); }

void AppendFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace nunchi
