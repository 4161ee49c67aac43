#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/tile_product.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

#if NUNCHI_F64_VERSION
// For gradient checks: simple and reasonably fast. b is packed into panels of columns.
template <>
void compute<Cpu<kIsa>>(CpuContext& ctx, const Product<double>& p) {
  check_product(p);
  constexpr std::int64_t kPanel = kBlockVectors * kLanes<double>;
  const std::int64_t panels = (p.n + kPanel - 1) / kPanel;
  const std::int64_t thread_elements = (p.k + p.m) * kPanel;
  const ScratchMemory memory(
      ctx.arena(), static_cast<std::size_t>(thread_elements * ctx.threads()) * sizeof(double));
  parallel_ranges(ctx, panels, 1, [&](std::int64_t first, std::int64_t last) {
    double* b = memory.as<double>() + omp_get_thread_num() * thread_elements;
    double* c = b + p.k * kPanel;
    for (std::int64_t panel = first; panel < last; ++panel) {
      const std::int64_t begin = panel * kPanel, columns = std::min(kPanel, p.n - begin);
      for (std::int64_t kk = 0; kk < p.k; ++kk) {
        for (std::int64_t j = 0; j < kPanel; ++j) {
          const std::int64_t column = begin + j;
          b[kk * kPanel + j] = j >= columns    ? 0.0
                               : p.transpose_b ? p.b[column * p.k + kk]
                                               : p.b[kk * p.n + column];
        }
      }
      const TileA<double> a =
          p.transpose_a ? TileA<double>{p.a, 1, p.m} : TileA<double>{p.a, p.k, 1};
      tile_product<double>(p.m, kPanel, p.k, a, b, kPanel, c, kPanel, false);
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          double& out = p.c[i * p.n + begin + j];
          double value = c[i * kPanel + j];
          if (p.accumulate) value += out;
          if (p.bias != nullptr) value += p.bias[begin + j];
          if (p.residual != nullptr) value += p.residual[i * p.n + begin + j];
          out = p.relu && value < 0 ? 0.0 : value;
        }
      }
    }
  });
}
#endif

}  // namespace nunchi::kernels
