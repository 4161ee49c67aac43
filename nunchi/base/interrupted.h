// A request to stop as an exception.
#pragma once

#include <atomic>

#include "nunchi/base/error.h"

namespace nunchi {

// The user asked to stop before there was anything worth saving.
class Interrupted : public Error {
 public:
  Interrupted() : Error("stopped.") {}
};

// Throws Interrupted if `stop` is true; null never stops.
inline void check_stop(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) throw Interrupted();
}

}  // namespace nunchi
