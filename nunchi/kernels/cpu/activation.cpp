#include "nunchi/kernels/activation.h"

#include <cmath>

#include "nunchi/kernels/cpu/dropout_mask.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/sigmoid.h"

namespace nunchi::kernels {
namespace {

constexpr double kInverseSqrt2 = 0.70710678118654752440;
constexpr double kInverseSqrt2Pi = 0.39894228040143267794;
constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;

// The cumulative distribution function of the standard normal distribution.
template <class V>
[[gnu::always_inline]] inline V normal_cdf(V x) {
  using T = Element<V>;
  if constexpr (std::is_same_v<V, T>) {
    return T(0.5) * std::erfc(-x * T(kInverseSqrt2));
  } else {
    V result;
    for (int i = 0; i < kLanes<T>; ++i) result[i] = T(0.5) * std::erfc(-x[i] * T(kInverseSqrt2));
    return result;
  }
}

// f(x); for the gated kinds, f of the gate (the first half of a row).
template <ActivationKind Kind, class V>
[[gnu::always_inline]] inline V value_of(V x) {
  using T = Element<V>;
  if constexpr (Kind == ActivationKind::swiglu) return x * logistic<V>(x);
  if constexpr (Kind == ActivationKind::none) return x;
  if constexpr (Kind == ActivationKind::relu) return x > T(0) ? x : V{};
  if constexpr (Kind == ActivationKind::gelu) return x * normal_cdf<V>(x);
  if constexpr (Kind == ActivationKind::gelu_tanh || Kind == ActivationKind::geglu) {
    // x (1 + tanh u) / 2 = x · logistic(2 u)
    return x * logistic<V>(T(2 * kSqrt2OverPi) * (x + T(kCubic) * x * x * x));
  }
  if constexpr (Kind == ActivationKind::tanh) return hyperbolic_tangent<V>(x);
}

template <ActivationKind Kind, class V>
[[gnu::always_inline]] inline V derivative_of(V x) {
  using T = Element<V>;
  if constexpr (Kind == ActivationKind::swiglu) {
    const V s = logistic<V>(x);
    return s * (T(1) + x * (T(1) - s));
  }
  if constexpr (Kind == ActivationKind::none) return splat<V>(T(1));
  if constexpr (Kind == ActivationKind::relu) return x > T(0) ? splat<V>(T(1)) : V{};
  if constexpr (Kind == ActivationKind::gelu) {
    return normal_cdf<V>(x) + x * T(kInverseSqrt2Pi) * exponential<V>(T(-0.5) * x * x);
  }
  if constexpr (Kind == ActivationKind::gelu_tanh || Kind == ActivationKind::geglu) {
    const V s = logistic<V>(T(2 * kSqrt2OverPi) * (x + T(kCubic) * x * x * x));
    return s + x * s * (T(1) - s) * T(2 * kSqrt2OverPi) * (T(1) + T(3 * kCubic) * x * x);
  }
  if constexpr (Kind == ActivationKind::tanh) {
    const V t = hyperbolic_tangent<V>(x);
    return T(1) - t * t;
  }
}

// Calls row(r, dropout_factors) for every row up to the count, on all threads. `dropout_factors`
// are the row's, [width]; null without dropout.
template <class T, class P, class F>
void for_each_row(CpuContext& ctx, const P& p, F&& row) {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, p.width));
  const DropoutScratch<T> dropout_scratch(ctx, p.dropout.active() ? p.width : 0);
  parallel_ranges(ctx, count_of(p.rows), grain, [&](std::int64_t begin, std::int64_t end) {
    if (!p.dropout.active()) {
      for (std::int64_t r = begin; r < end; ++r) row(r, static_cast<const T*>(nullptr));
      return;
    }
    const DropoutGenerator<T> generator(p.dropout);
    T* dropout_factors = dropout_scratch.thread_buffer();
    for (std::int64_t r = begin; r < end; ++r) {
      generator.fill(sentence_of(p.rows, r), position_of(p.rows, r), 0, p.width, dropout_factors);
      row(r, static_cast<const T*>(dropout_factors));
    }
  });
}

template <class V>
[[gnu::always_inline]] inline V with_dropout(V value, const Element<V>* dropout_factors,
                                             std::int64_t i) {
  return dropout_factors != nullptr ? value * load<V>(dropout_factors + i) : value;
}

template <ActivationKind Kind, class T>
void activate(CpuContext& ctx, const Activation<T>& p) {
  for_each_row<T>(ctx, p, [&](std::int64_t r, const T* dropout_factors) {
    const T* x = p.x + r * input_width(Kind, p.width);
    T* out = p.out + r * p.width;
    for_each_vector<T>(p.width, [&]<class V>(std::int64_t i, V) {
      V value = value_of<Kind, V>(load<V>(x + i));
      if constexpr (is_gated(Kind)) value *= load<V>(x + p.width + i);
      store<V>(out + i, with_dropout<V>(value, dropout_factors, i));
    });
  });
  clear_tail(p.rows, p.width, p.out);
}

template <ActivationKind Kind, class T>
void activate_backward(CpuContext& ctx, const ActivationBackward<T>& p) {
  for_each_row<T>(ctx, p, [&](std::int64_t r, const T* dropout_factors) {
    const T* x = p.x + r * input_width(Kind, p.width);
    const T* d_out = p.d_out + r * p.width;
    T* d_x = p.d_x + r * input_width(Kind, p.width);
    for_each_vector<T>(p.width, [&]<class V>(std::int64_t i, V) {
      const V d = with_dropout<V>(load<V>(d_out + i), dropout_factors, i);
      if constexpr (is_gated(Kind)) {
        const V gate = load<V>(x + i), linear = load<V>(x + p.width + i);
        store<V>(d_x + i, d * linear * derivative_of<Kind, V>(gate));
        store<V>(d_x + p.width + i, d * value_of<Kind, V>(gate));
      } else {
        store<V>(d_x + i, d * derivative_of<Kind, V>(load<V>(x + i)));
      }
    });
  });
  clear_tail(p.rows, input_width(Kind, p.width), p.d_x);
}

// Calls f.operator()<Kind>() for the given kind.
template <class F>
void for_kind(ActivationKind kind, F&& f) {
  switch (kind) {
    case ActivationKind::none:
      return f.template operator()<ActivationKind::none>();
    case ActivationKind::relu:
      return f.template operator()<ActivationKind::relu>();
    case ActivationKind::gelu:
      return f.template operator()<ActivationKind::gelu>();
    case ActivationKind::gelu_tanh:
      return f.template operator()<ActivationKind::gelu_tanh>();
    case ActivationKind::swiglu:
      return f.template operator()<ActivationKind::swiglu>();
    case ActivationKind::tanh:
      return f.template operator()<ActivationKind::tanh>();
    case ActivationKind::geglu:
      return f.template operator()<ActivationKind::geglu>();
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Activation<T>& p) {
  for_kind(p.kind, [&]<ActivationKind Kind>() { activate<Kind>(ctx, p); });
}
template void compute<Cpu<kIsa>>(CpuContext&, const Activation<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ActivationBackward<T>& p) {
  for_kind(p.kind, [&]<ActivationKind Kind>() { activate_backward<Kind>(ctx, p); });
}
template void compute<Cpu<kIsa>>(CpuContext&, const ActivationBackward<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Activation<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const ActivationBackward<double>&);
#endif

}  // namespace nunchi::kernels
