// A HostSignal in host memory that the GPU writes to.
#pragma once

#include <memory>

#include "nunchi/device/host_signal.h"

struct CUstream_st;

namespace nunchi {

// For kernels of `stream`, which must outlive the signal.
std::unique_ptr<HostSignal> make_mapped_host_signal(CUstream_st* stream);

}  // namespace nunchi
