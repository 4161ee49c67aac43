#include "nunchi/kernels/norm_product.h"

namespace nunchi::kernels::cpu {

template <>
void compute<Isa::portable>(CpuContext& ctx, const NormProduct<float>& p) {
  compute_best(ctx, p.norm);
  compute_best(ctx, p.product);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const NormProduct<double>& p) {
  compute_best(ctx, p.norm);
  compute_best(ctx, p.product);
}

}  // namespace nunchi::kernels::cpu
