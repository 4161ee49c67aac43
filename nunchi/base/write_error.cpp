#include "nunchi/base/write_error.h"

#include <cerrno>
#include <cstring>

namespace nunchi {

void fail_to_write(const std::filesystem::path& path, int reason) {
  const std::string message = "cannot write " + path.string() + ": " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) throw DiskFull(message);
  throw Error(message);
}

}  // namespace nunchi
