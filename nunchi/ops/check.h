// Shape checks that name the operation in their error.
#pragma once

#include <string>

#include "nunchi/autograd/variable.h"
#include "nunchi/base/error.h"

namespace nunchi {

// Throws Error("operation: message.") unless the condition holds.
inline void check(bool condition, const char* operation, const std::string& message) {
  if (!condition) throw Error(std::string(operation) + ": " + message + ".");
}

inline void check_shape(const char* operation, const char* name, const Tensor& tensor,
                        const Shape& expected) {
  check(tensor.shape() == expected, operation,
        std::string(name) + " has shape " + tensor.shape().to_string() + ", not " +
            expected.to_string());
}

}  // namespace nunchi
