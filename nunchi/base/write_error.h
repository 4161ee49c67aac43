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

// Throws "cannot write PATH: REASON" for the system's error number, as DiskFull where that is the
// reason.
[[noreturn]] void fail_to_write(const std::filesystem::path& path, int reason);

}  // namespace nunchi
