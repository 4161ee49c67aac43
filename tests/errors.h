// What an Error said, for tests of messages.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi::testing {

// The message of the Error that `call` throws; "no error" if it throws none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool says(const std::string& message, std::string_view words) {
  return message.find(words) != std::string::npos;
}

}  // namespace nunchi::testing
