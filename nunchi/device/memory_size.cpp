#include "nunchi/device/memory_size.h"

#include "nunchi/base/process.h"
#if NUNCHI_CUDA
#include "nunchi/device/cuda/check.h"
#endif

namespace nunchi {

MemorySize device_memory(const ContextBase& context) {
#if NUNCHI_CUDA
  if (context.device() == Device::cuda) {
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "reading the amount of GPU memory");
    constexpr double kMib = 1 << 20;
    return {static_cast<double>(total) / kMib, static_cast<double>(free) / kMib};
  }
#endif
  static_cast<void>(context);
  return {memory_mib(), available_memory_mib()};
}

}  // namespace nunchi
