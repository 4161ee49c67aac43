#include <cmath>

#include "nunchi/kernels/optimizer.h"

namespace nunchi::kernels::cpu {

template <>
void compute<Isa::portable>(CpuContext&, const ClipScale& p) {
  const AdamNumbers& n = *p.numbers;
  const double norm = std::sqrt(*p.squared_norm) / n.tokens;
  const double clip = n.max_norm > 0 && norm > n.max_norm ? n.max_norm / (norm + 1e-6) : 1.0;
  *p.report = {.gradient_norm = norm, .scale = std::isfinite(norm) ? clip / n.tokens : 0.0};
}

}  // namespace nunchi::kernels::cpu
