// Errors of writing files, with the system's reason.
#pragma once

#include <filesystem>

#include "nunchi/base/error.h"

namespace nunchi {

// The disk is full, or a quota or the limit on file sizes is reached.
class DiskFull : public Error {
 public:
  explicit DiskFull(const std::string& message) : Error(message) {}
};

// Throws "cannot write PATH: REASON" for the system's error number; a DiskFull if that is the
// reason.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error_number);

}  // namespace nunchi
