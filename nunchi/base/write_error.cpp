#include "nunchi/base/write_error.h"

#include <cerrno>
#include <cstring>

namespace nunchi {

void throw_write_error(const std::filesystem::path& path, int error_number) {
  const std::string message = "cannot write " + path.string() + ": " + std::strerror(error_number);
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG)
    throw DiskFull(message);
  throw Error(message);
}

}  // namespace nunchi
