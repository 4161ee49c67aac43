// Errors whose messages are for the user: what was wrong, where, what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace nunchi {

// A job that failed. The program ends with exit code 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// A call that was wrong: an unknown option, a bad value. The program ends with exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message) {}
};

}  // namespace nunchi
