// Error messages in tests.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi::testing {

// The message of the exception that `call` throws; "no error" if it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// Like error_of(), with "usage: " before the message of a UsageError.
template <class Call>
std::string error_with_kind(Call&& call) {
  bool usage = false;
  const std::string message = error_of([&] {
    try {
      call();
    } catch (const UsageError&) {
      usage = true;
      throw;
    }
  });
  return usage ? "usage: " + message : message;
}

inline bool says(const std::string& message, std::string_view words) {
  return message.find(words) != std::string::npos;
}

}  // namespace nunchi::testing
