// The library can gate a product by a mask, and sum the rows of its result or of one of its factors
// on the way. It need not know how for every size and type, nor be faster than with a pass of its
// own for the rest: each way is measured once.
#include "nunchi/kernels/linear_gradient.h"

#include <limits>

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/cuda/multiplication.h"
#include "nunchi/kernels/cuda/reduce.h"
#include "nunchi/kernels/reduce.h"

namespace nunchi::kernels::cuda {
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

// The fastest of several ways to one result. Where a product was too short to be measured, the
// first that is possible is as good as any.
class Fastest {
 public:
  void consider(int way, const Algorithm& product, double rest) {
    const double seconds = product.seconds == 0 ? 0 : product.seconds + rest;
    if (!product.possible || seconds >= best_) return;
    best_ = seconds;
    way_ = way;
  }
  int way() const { return way_; }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  int way_ = 0;
};

// Starts f() as one entry of a profile: the product's label with what rides on it. False where f()
// could not start.
template <class F>
bool start_as(CudaContext& ctx, const char* label, const char* rider, const Work& work, F&& f) {
  Profile* profile = ctx.profile();
  if (profile == nullptr) return f();
  if (profile->timed()) ctx.start_clock();
  if (!f()) return false;
  profile->add((std::string(label) + rider).c_str(), profile->timed() ? ctx.stop_clock() : 0, work);
  return true;
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
    const int way = p_.mask != nullptr && !ctx_.deterministic() ? chosen_way() : kApart;
    if (way == kGatedAndSummed && start_gated_and_summed()) return;
    if (way == kGated && start_gated()) return;
    kernels::run(ctx_, product_);
    if (p_.d_bias != nullptr) {
      kernels::run(ctx_, relu_column_sum(p_.d_bias));
    } else {
      kernels::run(ctx_, relu());
    }
  }

 private:
  // Both in the product; relu in the product; neither.
  enum Ways : int { kGatedAndSummed, kGated, kApart };

  Multiplication<T, T> multiplication(const Epilogue& epilogue) {
    return Multiplication<T, T>(ctx_, product_, epilogue);
  }
  Epilogue gate() const { return {.kind = CUBLASLT_EPILOGUE_DRELU, .mask = p_.mask}; }
  Epilogue gate_and_sum() {
    return with_known_type(ctx_, product_,
                           {.kind = CUBLASLT_EPILOGUE_DRELU_BGRAD,
                            .bias = room_.template as<void>(),
                            .mask = p_.mask});
  }
  ReluColumnSum<T> relu_column_sum(float* out) const {
    return {.rows = product_.m, .width = product_.n, .y = p_.y, .d = product_.c, .out = out};
  }
  ColumnSum<T> column_sum(float* out) const {
    return {.rows = product_.m, .width = product_.n, .x = product_.c, .out = out};
  }
  ActivationBackward<T> relu() const {
    return {.kind = ActivationKind::relu,
            .rows = {.capacity = product_.m},
            .width = product_.n,
            .x = p_.y,
            .d_out = product_.c,
            .d_x = product_.c};
  }

  int chosen_way() {
    const bool summed = p_.d_bias != nullptr;
    const PlanKey key = multiplication(summed ? gate_and_sum() : gate()).key();
    return ctx_.cache<Plans>().way(key, [&] {
      // The result's place may be used to measure: nothing is there yet.
      const auto seconds = [&](const auto& job) {
        return seconds_of(ctx_, [&] { compute(ctx_, job); });
      };
      float* out = room_.template as<float>();
      Fastest fastest;
      if (summed) {
        fastest.consider(kGatedAndSummed, multiplication(gate_and_sum()).chosen(), kAddSeconds);
      }
      fastest.consider(kGated, multiplication(gate()).chosen(),
                       summed ? seconds(column_sum(out)) : 0);
      fastest.consider(kApart, multiplication(epilogue_of(product_)).chosen(),
                       summed ? seconds(relu_column_sum(out)) : seconds(relu()));
      return fastest.way();
    });
  }

  bool start_gated_and_summed() {
    return start_as(ctx_, product_.label, "+relu+bias", p_.work(), [&] {
      const Epilogue epilogue = gate_and_sum();
      if (!multiplication(epilogue).start()) return false;
      add_bias_gradient(ctx_, product_.n, epilogue, p_.d_bias);
      return true;
    });
  }
  bool start_gated() {
    const bool started = start_as(ctx_, product_.label, "+relu", p_.work(),
                                  [&] { return multiplication(gate()).start(); });
    if (started && p_.d_bias != nullptr) kernels::run(ctx_, column_sum(p_.d_bias));
    return started;
  }

  CudaContext& ctx_;
  const GatedProduct<T>& p_;
  const Product<T>& product_;
  ScratchMemory room_;  // for a bias's gradient
};

template <class T>
void weight_gradient(CudaContext& ctx, const WeightGradient<T>& p) {
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
  const int way = ctx.cache<Plans>().way(with_bias.key(), [&] {
    ColumnSum<T> measured = sum;
    measured.out = room.as<float>();
    Fastest fastest;
    fastest.consider(kTogether, with_bias.chosen(), kAddSeconds);
    fastest.consider(kApart, Multiplication<T, float>(ctx, product, epilogue_of(product)).chosen(),
                     seconds_of(ctx, [&] { compute(ctx, measured); }));
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

}  // namespace

template <>
void compute(CudaContext& ctx, const GatedProduct<float>& p) {
  Gated<float>(ctx, p).run();
}
template <>
void compute(CudaContext& ctx, const GatedProduct<BFloat16>& p) {
  Gated<BFloat16>(ctx, p).run();
}
template <>
void compute(CudaContext& ctx, const WeightGradient<float>& p) {
  weight_gradient(ctx, p);
}
template <>
void compute(CudaContext& ctx, const WeightGradient<BFloat16>& p) {
  weight_gradient(ctx, p);
}

}  // namespace nunchi::kernels::cuda
