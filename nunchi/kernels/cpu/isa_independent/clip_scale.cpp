#include <cmath>

#include "nunchi/kernels/optimizer.h"

namespace nunchi::kernels {

template <>
void compute<AnyCpu>(CpuContext&, const ClipScale& p) {
  const AdamSettings& settings = *p.settings;
  const double norm = std::sqrt(*p.squared_norm) / settings.tokens;
  const double clip =
      settings.max_norm > 0 && norm > settings.max_norm ? settings.max_norm / (norm + 1e-6) : 1.0;
  bool finite = std::isfinite(norm);
  for (std::int64_t i = 0; i < p.loss_count; ++i) finite = finite && std::isfinite(p.losses[i]);
  *p.report = {.gradient_norm = norm, .scale = finite ? clip / settings.tokens : 0.0};
}

}  // namespace nunchi::kernels
