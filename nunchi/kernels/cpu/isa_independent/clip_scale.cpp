#include <cmath>

#include "nunchi/kernels/optimizer.h"

namespace nunchi::kernels {

template <>
void compute<AnyCpu>(CpuContext&, const ClipScale& p) {
  const AdamSettings& n = *p.numbers;
  const double norm = std::sqrt(*p.squared_norm) / n.tokens;
  const double clip = n.max_norm > 0 && norm > n.max_norm ? n.max_norm / (norm + 1e-6) : 1.0;
  bool finite = std::isfinite(norm);
  for (std::int64_t i = 0; i < p.loss_count; ++i) finite = finite && std::isfinite(p.losses[i]);
  *p.report = {.gradient_norm = norm, .scale = finite ? clip / n.tokens : 0.0};
}

}  // namespace nunchi::kernels
