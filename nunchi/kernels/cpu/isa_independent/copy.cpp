#include <cstring>

#include "nunchi/kernels/memory.h"

namespace nunchi::kernels {

template <>
void compute<AnyCpu>(CpuContext&, const CopyBytes& p) {
  if (p.bytes > 0) std::memcpy(p.to, p.from, p.bytes);
}

}  // namespace nunchi::kernels
