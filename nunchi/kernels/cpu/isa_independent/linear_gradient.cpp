#include "nunchi/kernels/linear_gradient.h"

#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ActivationGradientProduct<T>& p) {
  const Product<T>& product = p.product;
  run(ctx, product);
  run(ctx, ActivationBackward<T>{.kind = p.kind,
                                 .rows = {.capacity = product.m},
                                 .width = product.n,
                                 .x = p.y,
                                 .d_out = product.c,
                                 .d_x = product.c});
  if (p.d_bias == nullptr) return;
  run(ctx, ColumnSum<T>{.rows = product.m, .width = product.n, .x = product.c, .out = p.d_bias});
}
template void compute<AnyCpu>(CpuContext&, const ActivationGradientProduct<float>&);
template void compute<AnyCpu>(CpuContext&, const ActivationGradientProduct<double>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const WeightGradient<T>& p) {
  const auto& product = p.product;
  run(ctx, product);
  if (p.d_bias == nullptr) return;
  run(ctx, ColumnSum<T>{.rows = product.k, .width = product.m, .x = product.a, .out = p.d_bias});
}
template void compute<AnyCpu>(CpuContext&, const WeightGradient<float>&);
template void compute<AnyCpu>(CpuContext&, const WeightGradient<double>&);

}  // namespace nunchi::kernels
