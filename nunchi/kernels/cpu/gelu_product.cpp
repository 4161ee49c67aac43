#include "nunchi/kernels/gelu_product.h"

#include "nunchi/kernels/activation.h"

namespace nunchi::kernels::cpu {
namespace {

template <class T>
void gelu_product(CpuContext& ctx, const GeluProduct<T>& p) {
  run(ctx, p.product);
  run(ctx, Activation<T>{.kind = ActivationKind::gelu_tanh,
                         .rows = {.capacity = p.product.m},
                         .width = p.product.n,
                         .x = p.product.c,
                         .out = p.out});
}

}  // namespace

template <>
void compute<Isa::portable>(CpuContext& ctx, const GeluProduct<float>& p) {
  gelu_product(ctx, p);
}
template <>
void compute<Isa::portable>(CpuContext& ctx, const GeluProduct<double>& p) {
  gelu_product(ctx, p);
}

}  // namespace nunchi::kernels::cpu
