#include "nunchi/device/context.h"

#include "nunchi/base/error.h"

namespace nunchi {

std::unique_ptr<ContextBase::CapturedGraph> ContextBase::capture(const std::function<void()>&) {
  throw Error("this device cannot capture and replay kernels.");
}

}  // namespace nunchi
