#include "nunchi/kernels/gelu_product.h"

#include "nunchi/kernels/activation.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GeluProduct<T>& p) {
  run(ctx, p.product);
  run(ctx, Activation<T>{.kind = ActivationKind::gelu_tanh,
                         .rows = {.capacity = p.product.m},
                         .width = p.product.n,
                         .x = p.product.c,
                         .out = p.out});
}
template void compute<AnyCpu>(CpuContext&, const GeluProduct<float>&);
template void compute<AnyCpu>(CpuContext&, const GeluProduct<double>&);

}  // namespace nunchi::kernels
