#include <cstring>

#include "nunchi/kernels/memory.h"

namespace nunchi::kernels::cpu {

template <>
void compute<Isa::portable>(CpuContext&, const CopyBytes& p) {
  if (p.bytes > 0) std::memcpy(p.to, p.from, p.bytes);
}

}  // namespace nunchi::kernels::cpu
