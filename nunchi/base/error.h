// Errors whose messages are for the user: what was wrong, where, what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace nunchi {

// Thrown when a job fails. The program ends with exit code 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Thrown for an invalid command line or option. The program ends with exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message) {}
};

}  // namespace nunchi
