#include "nunchi/kernels/linear_gradient.h"

#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels::cpu {
namespace {

template <class T>
void gated_product(CpuContext& ctx, const GatedProduct<T>& p) {
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

template <class T>
void weight_gradient(CpuContext& ctx, const WeightGradient<T>& p) {
  const auto& product = p.product;
  run(ctx, product);
  if (p.d_bias == nullptr) return;
  run(ctx, ColumnSum<T>{.rows = product.k, .width = product.m, .x = product.a, .out = p.d_bias});
}

}  // namespace

template <>
void compute<Isa::portable>(CpuContext& ctx, const GatedProduct<float>& p) {
  gated_product(ctx, p);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const GatedProduct<double>& p) {
  gated_product(ctx, p);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const WeightGradient<float>& p) {
  weight_gradient(ctx, p);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const WeightGradient<double>& p) {
  weight_gradient(ctx, p);
}

}  // namespace nunchi::kernels::cpu
