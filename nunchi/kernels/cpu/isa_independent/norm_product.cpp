#include "nunchi/kernels/norm_product.h"

namespace nunchi::kernels {

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const NormProduct<T, C>& p) {
  execute(ctx, p.norm);
  execute(ctx, p.product);
}
template void compute<AnyCpu>(CpuContext&, const NormProduct<float>&);
template void compute<AnyCpu>(CpuContext&, const NormProduct<double>&);

}  // namespace nunchi::kernels
