// The library can gate a product by relu's mask or gelu's argument, and sum the rows of its result
// or of one of its factors on the way. It need not know how for every size and type, nor be faster
// than with a pass of its own for the rest: each way is measured once.
#include "nunchi/kernels/linear_gradient.h"

#include "nunchi/kernels/cuda/common/reduce.h"
#include "nunchi/kernels/cuda/product/measured_ways.h"
#include "nunchi/kernels/cuda/product/multiplication.h"
#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels {
namespace {

template <class N>
__global__ void add_kernel(std::int64_t count, const N* x, float* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] += to_float(x[i]);
}

// The library writes a bias's gradient and cannot add to one.
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
constexpr double kAddSeconds = 2e-6;  // about what that takes

// `epilogue` with its bias's gradient in f32, or in the product's type where the library knows no
// other.
template <class T, class C>
Epilogue with_known_type(CudaContext& ctx, const Product<T, C>& p, Epilogue epilogue) {
  epilogue.bias_type = CUDA_R_32F;
  if (!Multiplication<T, C>(ctx, p, epilogue).chosen().possible) epilogue.bias_type = kType<T>;
  return epilogue;
}

template <class T>
class Gated {
 public:
  Gated(CudaContext& ctx, const GatedProduct<T>& p)
      : ctx_(ctx),
        p_(p),
        product_(p.product),
        room_(ctx.arena(), static_cast<std::size_t>(product_.n) * sizeof(float)) {}

  void run() {
    if (product_.m * product_.n == 0) return;
    const int way = can_ride() && !ctx_.deterministic() ? chosen_way() : kApart;
    if (way == kGatedAndSummed && start_gated_and_summed()) return;
    if (way == kGated && start_gated()) return;
    kernels::run(ctx_, product_);
    run_apart([&](const auto& job) { kernels::run(ctx_, job); }, p_.d_bias);
  }

 private:
  // Both in the product; the gate in the product; neither.
  enum Ways : int { kGatedAndSummed, kGated, kApart };

  bool by_gelu() const { return p_.kind == ActivationKind::gelu_tanh; }
  bool can_ride() const {
    return by_gelu() ? can_be_argument(p_.y, product_.n) : p_.mask != nullptr;
  }

  Multiplication<T, T> multiplication(const Epilogue& epilogue) {
    return Multiplication<T, T>(ctx_, product_, epilogue);
  }
  Epilogue gate() const {
    if (by_gelu()) return {.kind = CUBLASLT_EPILOGUE_DGELU, .argument = p_.y};
    return {.kind = CUBLASLT_EPILOGUE_DRELU, .mask = p_.mask};
  }
  Epilogue gate_and_sum() {
    Epilogue epilogue = gate();
    epilogue.kind = by_gelu() ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DRELU_BGRAD;
    epilogue.bias = room_.template as<void>();
    return with_known_type(ctx_, product_, epilogue);
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

  // What the product does not do: relu's gate and the sum are one pass, gelu's are two.
  template <class Run>
  void run_apart(Run&& run, float* d_bias) const {
    if (d_bias != nullptr && !by_gelu()) return run(relu_column_sum(d_bias));
    run(activation());
    if (d_bias != nullptr) run(column_sum(d_bias));
  }

  int chosen_way() {
    const bool summed = p_.d_bias != nullptr;
    const PlanKey key = multiplication(summed ? gate_and_sum() : gate()).key();
    return ctx_.cache<Plans>().way(key, [&] {
      // The result's place may be used to measure: nothing is there yet.
      const auto compute_one = [&](const auto& job) { dispatch(ctx_, job); };
      float* out = room_.template as<float>();
      const double sum = !summed ? 0 : seconds_of(ctx_, [&] { compute_one(column_sum(out)); });
      const double apart =
          seconds_of(ctx_, [&] { run_apart(compute_one, summed ? out : nullptr); });
      Fastest fastest;
      if (summed) {
        fastest.consider(kGatedAndSummed, multiplication(gate_and_sum()).chosen(), kAddSeconds);
      }
      fastest.consider(kGated, multiplication(gate()).chosen(), sum);
      fastest.consider(kApart, multiplication(epilogue_of(product_)).chosen(), apart);
      return fastest.way();
    });
  }

  bool start_gated_and_summed() {
    return start_as(ctx_, product_.label, by_gelu() ? "+gelu+bias" : "+relu+bias", p_.work(), [&] {
      const Epilogue epilogue = gate_and_sum();
      if (!multiplication(epilogue).start()) return false;
      add_bias_gradient(ctx_, product_.n, epilogue, p_.d_bias);
      return true;
    });
  }
  bool start_gated() {
    const bool started = start_as(ctx_, product_.label, by_gelu() ? "+gelu" : "+relu", p_.work(),
                                  [&] { return multiplication(gate()).start(); });
    if (started && p_.d_bias != nullptr) kernels::run(ctx_, column_sum(p_.d_bias));
    return started;
  }

  CudaContext& ctx_;
  const GatedProduct<T>& p_;
  const Product<T>& product_;
  ScratchMemory room_;  // for a bias's gradient
};

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GatedProduct<T>& p) {
  Gated<T>(ctx, p).run();
}
template void compute<Cuda>(CudaContext&, const GatedProduct<float>&);
template void compute<Cuda>(CudaContext&, const GatedProduct<BFloat16>&);

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
  const ScratchMemory room(ctx.arena(), static_cast<std::size_t>(product.m) * sizeof(float));
  // The library's second factor is our first, d_y; it sums over the rows that are multiplied away.
  const Epilogue epilogue =
      with_known_type(ctx, product, {.kind = CUBLASLT_EPILOGUE_BGRADB, .bias = room.as<void>()});
  Multiplication<T, float> with_bias(ctx, product, epilogue);
  enum Ways : int { kTogether, kApart };
  const int way = ctx.template cache<Plans>().way(with_bias.key(), [&] {
    ColumnSum<T> measured = sum;
    measured.out = room.as<float>();
    Fastest fastest;
    fastest.consider(kTogether, with_bias.chosen(), kAddSeconds);
    fastest.consider(kApart, Multiplication<T, float>(ctx, product, epilogue_of(product)).chosen(),
                     seconds_of(ctx, [&] { dispatch(ctx, measured); }));
    return fastest.way();
  });
  const auto start = [&] {
    if (!with_bias.start()) return false;
    add_bias_gradient(ctx, product.m, epilogue, p.d_bias);
    return true;
  };
  if (way == kTogether && start_as(ctx, product.label, "+bias", p.work(), start)) return;
  run(ctx, product);
  run(ctx, sum);
}
template void compute<Cuda>(CudaContext&, const WeightGradient<float>&);
template void compute<Cuda>(CudaContext&, const WeightGradient<BFloat16>&);

}  // namespace nunchi::kernels
