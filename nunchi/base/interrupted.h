// A request to stop, on its way to whoever can tell the user.
#pragma once

#include <atomic>

#include "nunchi/base/error.h"

namespace nunchi {

// Somebody asked to stop before there was anything to keep.
class Interrupted : public Error {
 public:
  Interrupted() : Error("stopped.") {}
};

// Throws Interrupted once `stop` is true; null: nobody will ask.
inline void check_stop(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) throw Interrupted();
}

}  // namespace nunchi
