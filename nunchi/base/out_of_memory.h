#pragma once

#include "nunchi/base/error.h"

namespace nunchi {

// The device or the machine has no memory left for a tensor.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(message) {}
};

}  // namespace nunchi
