// f32 products by OpenBLAS, for builds without oneDNN. It has no packed form that callers could
// keep.
#include <cblas.h>

#include "nunchi/kernels/cpu/product_threads.h"
#include "nunchi/kernels/int8_product.h"

namespace nunchi::kernels {

bool rows_are_independent() { return false; }

const char* product_library() { return OPENBLAS_VERSION; }

std::int64_t packed_elements(CpuContext&, const PackMatrix<float>&) { return 0; }
std::int64_t packed_elements(CpuContext&, const PackMatrix<double>&) { return 0; }

template <>
void compute<AnyCpu>(CpuContext&, const PackMatrix<float>&) {}
template <>
void compute<AnyCpu>(CpuContext&, const PackMatrix<double>&) {}

template <>
void compute<AnyCpu>(CpuContext& ctx, const Product<float>& p) {
  if (p.formed_b.form == WeightForm::int8 && p.formed_b.data != nullptr) {
    return run_unprofiled(ctx, Int8Product{p});
  }
  check_product(p);
  if (p.m == 0 || p.n == 0) return;
  const int threads = product_threads(ctx, p);
  if (openblas_get_num_threads() != threads) openblas_set_num_threads(threads);
  const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n),
             k = static_cast<blasint>(p.k);
  cblas_sgemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
              p.transpose_b ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, p.a, p.transpose_a ? m : k,
              p.b, p.transpose_b ? k : n, p.accumulate ? 1.0f : 0.0f, p.c, n);
  if (p.bias == nullptr && !p.relu && p.residual == nullptr) return;
  parallel_ranges(ctx, p.m, row_grain(p.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* row = p.c + i * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) {
        float value = p.bias != nullptr ? row[j] + p.bias[j] : row[j];
        if (p.residual != nullptr) value += p.residual[i * p.n + j];
        row[j] = p.relu && value < 0 ? 0.0f : value;
      }
    }
  });
}

}  // namespace nunchi::kernels
