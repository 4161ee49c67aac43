#include "nunchi/kernels/norm_product.h"

namespace nunchi::kernels {

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const NormProduct<T, C>& p) {
  run_unprofiled(ctx, p.norm);
  run_unprofiled(ctx, p.product);
}
template void compute<AnyCpu>(CpuContext&, const NormProduct<float>&);
template void compute<AnyCpu>(CpuContext&, const NormProduct<double>&);

}  // namespace nunchi::kernels
