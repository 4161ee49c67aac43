// cuBLASLt can multiply a product by relu's mask or gelu's derivative, and sum the rows of its
// result or of a factor. That is not possible for every size and type, nor always faster than
// separate kernels: each variant is measured once.
#include "nunchi/kernels/linear_gradient.h"

#include "nunchi/kernels/cuda/common/column_sums.h"
#include "nunchi/kernels/cuda/product/cublaslt_product.h"
#include "nunchi/kernels/cuda/product/fastest_variant.h"
#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels {
namespace {

template <class N>
__global__ void add_kernel(std::int64_t count, const N* x, float* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] += to_float(x[i]);
}

// Adds a bias gradient that cuBLASLt has written, since it cannot accumulate into one.
void add_bias_gradient(CudaContext& ctx, std::int64_t count, const Epilogue& written, float* out) {
  constexpr int kThreads = 256;
  const unsigned blocks = blocks_for(count, kThreads);
  if (written.bias_type == CUDA_R_16BF) {
    add_kernel<<<blocks, kThreads, 0, ctx.stream()>>>(
        count, static_cast<const __nv_bfloat16*>(written.bias), out);
  } else {
    add_kernel<<<blocks, kThreads, 0, ctx.stream()>>>(count,
                                                      static_cast<const float*>(written.bias), out);
  }
  check_launch("add_bias_gradient");
}
constexpr double kAddSeconds = 2e-6;  // estimated time of add_bias_gradient()

// `epilogue` with the bias gradient in f32, or in the product's type if cuBLASLt does not support
// f32.
template <class T, class C>
Epilogue with_supported_bias_type(CudaContext& ctx, const Product<T, C>& p, Epilogue epilogue) {
  epilogue.bias_type = CUDA_R_32F;
  if (!CublasLtProduct<T, C>(ctx, p, epilogue).chosen().possible) epilogue.bias_type = kType<T>;
  return epilogue;
}

template <class T>
class GatedProductRunner {
 public:
  GatedProductRunner(CudaContext& ctx, const ActivationGradientProduct<T>& p)
      : ctx_(ctx),
        p_(p),
        product_(p.product),
        scratch_(ctx.arena(), static_cast<std::size_t>(product_.n) * sizeof(float)) {}

  void run() {
    if (product_.m * product_.n == 0) return;
    const int variant = can_fuse() && !ctx_.deterministic() ? chosen_variant() : kSeparate;
    if (variant == kGatedAndSummed && launch_gated_and_summed()) return;
    if (variant == kGated && launch_gated()) return;
    kernels::run(ctx_, product_);
    run_separately([&](const auto& kernel) { kernels::run(ctx_, kernel); }, p_.d_bias);
  }

 private:
  // Fused into the product: the activation's derivative and the sum; only the derivative; nothing.
  enum Variants : int { kGatedAndSummed, kGated, kSeparate };

  bool is_gelu() const { return p_.kind == ActivationKind::gelu_tanh; }
  bool can_fuse() const {
    return is_gelu() ? can_be_gelu_input(p_.y, product_.n) : p_.mask != nullptr;
  }

  CublasLtProduct<T, T> library_product(const Epilogue& epilogue) {
    return CublasLtProduct<T, T>(ctx_, product_, epilogue);
  }
  Epilogue gate() const {
    if (is_gelu()) return {.kind = CUBLASLT_EPILOGUE_DGELU, .gelu_input = p_.y};
    return {.kind = CUBLASLT_EPILOGUE_DRELU, .mask = p_.mask};
  }
  Epilogue gate_and_sum() {
    Epilogue epilogue = gate();
    epilogue.kind = is_gelu() ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DRELU_BGRAD;
    epilogue.bias = scratch_.template as<void>();
    return with_supported_bias_type(ctx_, product_, epilogue);
  }
  ReluColumnSum<T> relu_column_sum(float* out) const {
    return {.rows = product_.m, .width = product_.n, .y = p_.y, .d = product_.c, .out = out};
  }
  ColumnSum<T> column_sum(float* out) const {
    return {.rows = product_.m, .width = product_.n, .x = product_.c, .out = out};
  }
  ActivationBackward<T> activation() const {
    return {.kind = p_.kind,
            .rows = {.capacity = product_.m},
            .width = product_.n,
            .x = p_.y,
            .d_out = product_.c,
            .d_x = product_.c};
  }

  // The steps that are not fused: relu's mask and the sum are one kernel, gelu's are two.
  template <class Run>
  void run_separately(Run&& run, float* d_bias) const {
    if (d_bias != nullptr && !is_gelu()) return run(relu_column_sum(d_bias));
    run(activation());
    if (d_bias != nullptr) run(column_sum(d_bias));
  }

  int chosen_variant() {
    const bool summed = p_.d_bias != nullptr;
    const PlanKey key = library_product(summed ? gate_and_sum() : gate()).key();
    return ctx_.cache<Plans>().variant(key, [&] {
      // The result's memory may be used for measuring: it holds nothing yet.
      const auto compute_one = [&](const auto& kernel) { run_unprofiled(ctx_, kernel); };
      float* out = scratch_.template as<float>();
      const double sum = !summed ? 0 : seconds_of(ctx_, [&] { compute_one(column_sum(out)); });
      const double separate_seconds =
          seconds_of(ctx_, [&] { run_separately(compute_one, summed ? out : nullptr); });
      FastestVariant fastest;
      if (summed) {
        fastest.consider(kGatedAndSummed, library_product(gate_and_sum()).chosen(), kAddSeconds);
      }
      fastest.consider(kGated, library_product(gate()).chosen(), sum);
      fastest.consider(kSeparate, library_product(epilogue_of(product_)).chosen(),
                       separate_seconds);
      return fastest.variant();
    });
  }

  bool launch_gated_and_summed() {
    return launch_as(ctx_, product_.label, is_gelu() ? "+gelu+bias" : "+relu+bias", p_.work(), [&] {
      const Epilogue epilogue = gate_and_sum();
      if (!library_product(epilogue).launch()) return false;
      add_bias_gradient(ctx_, product_.n, epilogue, p_.d_bias);
      return true;
    });
  }
  bool launch_gated() {
    const bool launched = launch_as(ctx_, product_.label, is_gelu() ? "+gelu" : "+relu", p_.work(),
                                    [&] { return library_product(gate()).launch(); });
    if (launched && p_.d_bias != nullptr) kernels::run(ctx_, column_sum(p_.d_bias));
    return launched;
  }

  CudaContext& ctx_;
  const ActivationGradientProduct<T>& p_;
  const Product<T>& product_;
  ScratchMemory scratch_;  // for a bias gradient
};

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ActivationGradientProduct<T>& p) {
  GatedProductRunner<T>(ctx, p).run();
}
template void compute<Cuda>(CudaContext&, const ActivationGradientProduct<float>&);
template void compute<Cuda>(CudaContext&, const ActivationGradientProduct<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const WeightGradient<T>& p) {
  const Product<T, float>& product = p.product;
  if (p.d_bias == nullptr || product.m * product.n == 0 || product.k == 0) {
    return run(ctx, product);
  }
  ColumnSum<T> sum{.rows = product.k, .width = product.m, .x = product.a, .out = p.d_bias};
  if (ctx.deterministic()) {
    run(ctx, product);
    return run(ctx, sum);
  }
  const ScratchMemory scratch(ctx.arena(), static_cast<std::size_t>(product.m) * sizeof(float));
  // The bias gradient is the sum of the second factor over K: cuBLASLt's second factor is our
  // first, d_y, and its rows are K.
  const Epilogue epilogue = with_supported_bias_type(
      ctx, product, {.kind = CUBLASLT_EPILOGUE_BGRADB, .bias = scratch.as<void>()});
  CublasLtProduct<T, float> with_bias(ctx, product, epilogue);
  enum Variants : int { kFused, kSeparate };
  const int variant = ctx.template cache<Plans>().variant(with_bias.key(), [&] {
    ColumnSum<T> measured = sum;
    measured.out = scratch.as<float>();
    FastestVariant fastest;
    fastest.consider(kFused, with_bias.chosen(), kAddSeconds);
    fastest.consider(kSeparate,
                     CublasLtProduct<T, float>(ctx, product, epilogue_of(product)).chosen(),
                     seconds_of(ctx, [&] { run_unprofiled(ctx, measured); }));
    return fastest.variant();
  });
  const auto launch = [&] {
    if (!with_bias.launch()) return false;
    add_bias_gradient(ctx, product.m, epilogue, p.d_bias);
    return true;
  };
  if (variant == kFused && launch_as(ctx, product.label, "+bias", p.work(), launch)) return;
  run(ctx, product);
  run(ctx, sum);
}
template void compute<Cuda>(CudaContext&, const WeightGradient<float>&);
template void compute<Cuda>(CudaContext&, const WeightGradient<BFloat16>&);

}  // namespace nunchi::kernels
