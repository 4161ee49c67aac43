// The library can apply gelu_tanh to a product on the way, and leave its argument too if that is
// asked for. Where it is not faster than with a pass of its own, or not possible, gelu has one.
#include "nunchi/kernels/gelu_product.h"

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/cuda/product/measured_ways.h"
#include "nunchi/kernels/cuda/product/row_product.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GeluProduct<T>& p) {
  const Product<T>& product = p.product;
  const Activation<T> gelu{.kind = ActivationKind::gelu_tanh,
                           .rows = {.capacity = product.m},
                           .width = product.n,
                           .x = product.c,
                           .out = p.out};
  const auto apart = [&] {
    run(ctx, product);
    run(ctx, gelu);
  };
  // Products of few rows are not the library's.
  if (product.m <= kMostRows || product.n == 0 || ctx.deterministic() ||
      !can_be_argument(product.c, product.n)) {
    return apart();
  }
  Product<T> into_out = product;
  into_out.c = p.out;
  const bool biased = product.bias != nullptr;
  Epilogue epilogue = epilogue_of(product);
  if (p.out == product.c) {
    epilogue.kind = biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  } else {
    epilogue.kind = biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    epilogue.argument = product.c;
  }
  Multiplication<T, T> both(ctx, into_out, epilogue);
  enum Ways : int { kTogether, kApart };
  const int way = ctx.template cache<Plans>().way(both.key(), [&] {
    Fastest fastest;
    fastest.consider(kTogether, both.chosen(), 0);
    fastest.consider(kApart, Multiplication<T, T>(ctx, product, epilogue_of(product)).chosen(),
                     seconds_of(ctx, [&] { dispatch(ctx, gelu); }));
    return fastest.way();
  });
  const auto start = [&] { return both.start(); };
  if (way == kTogether && start_as(ctx, product.label, "+gelu", p.work(), start)) return;
  apart();
}
template void compute<Cuda>(CudaContext&, const GeluProduct<float>&);
template void compute<Cuda>(CudaContext&, const GeluProduct<BFloat16>&);

}  // namespace nunchi::kernels
