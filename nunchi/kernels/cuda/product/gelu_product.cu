// cuBLASLt can fuse gelu_tanh into a product and also write gelu's input. Where that is impossible
// or not faster, gelu is a separate kernel.
#include "nunchi/kernels/gelu_product.h"

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/cuda/product/fastest_variant.h"
#include "nunchi/kernels/cuda/product/few_rows_product.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GeluProduct<T>& p) {
  const Product<T>& product = p.product;
  const Activation<T> gelu{.kind = ActivationKind::gelu_tanh,
                           .rows = {.capacity = product.m},
                           .width = product.n,
                           .x = product.c,
                           .out = p.out};
  const auto run_separately = [&] {
    run(ctx, product);
    run(ctx, gelu);
  };
  // Products of few rows do not use cuBLASLt.
  if (product.m <= kMaxFewRows || product.n == 0 || ctx.deterministic() ||
      !can_be_gelu_input(product.c, product.n)) {
    return run_separately();
  }
  Product<T> fused_product = product;
  fused_product.c = p.out;
  const bool biased = product.bias != nullptr;
  Epilogue epilogue = epilogue_of(product);
  if (p.out == product.c) {
    epilogue.kind = biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  } else {
    epilogue.kind = biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    epilogue.gelu_input = product.c;
  }
  CublasLtProduct<T, T> fused(ctx, fused_product, epilogue);
  enum Variants : int { kFused, kSeparate };
  const int variant = ctx.template cache<Plans>().variant(fused.key(), [&] {
    FastestVariant fastest;
    fastest.consider(kFused, fused.chosen(), 0);
    fastest.consider(kSeparate, CublasLtProduct<T, T>(ctx, product, epilogue_of(product)).chosen(),
                     seconds_of(ctx, [&] { run_unprofiled(ctx, gelu); }));
    return fastest.variant();
  });
  const auto launch = [&] { return fused.launch(); };
  if (variant == kFused && launch_as(ctx, product.label, "+gelu", p.work(), launch)) return;
  run_separately();
}
template void compute<Cuda>(CudaContext&, const GeluProduct<float>&);
template void compute<Cuda>(CudaContext&, const GeluProduct<BFloat16>&);

}  // namespace nunchi::kernels
