// What the system says when something cannot be written.
#pragma once

#include <filesystem>

#include "nunchi/base/error.h"

namespace nunchi {

// A disk that is full, or a limit on the size of files or on a user's share.
class NoRoom : public Error {
 public:
  explicit NoRoom(const std::string& message) : Error(message) {}
};

// Throws "cannot write PATH: REASON" for the system's error number, as NoRoom where it means that.
[[noreturn]] void fail_to_write(const std::filesystem::path& path, int reason);

}  // namespace nunchi
