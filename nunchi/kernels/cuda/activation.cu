#include "nunchi/kernels/activation.h"

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;
constexpr float kRootHalf = 0.70710678118654752f;       // 1 / √2
constexpr float kRootTwoOverPi = 0.79788456080286536f;  // √(2 / π)
constexpr float kCubic = 0.044715f;

// f(x); for the gated kinds, the function that is applied to the gate.
template <ActivationKind Kind>
__device__ float value_of(float x) {
  if constexpr (Kind == ActivationKind::relu) {
    return x != x ? x : fmaxf(x, 0.0f);
  } else if constexpr (Kind == ActivationKind::gelu) {
    return 0.5f * x * (1 + erff(x * kRootHalf));
  } else if constexpr (Kind == ActivationKind::swiglu) {
    return x / (1 + expf(-x));
  } else if constexpr (Kind == ActivationKind::gelu_tanh || Kind == ActivationKind::geglu) {
    return 0.5f * x * (1 + tanhf(kRootTwoOverPi * (x + kCubic * x * x * x)));
  } else if constexpr (Kind == ActivationKind::tanh) {
    return tanhf(x);
  } else {
    return x;
  }
}

// f'(x)
template <ActivationKind Kind>
__device__ float slope_of(float x) {
  if constexpr (Kind == ActivationKind::relu) {
    return x > 0 ? 1.0f : 0.0f;
  } else if constexpr (Kind == ActivationKind::gelu) {
    const float density = 0.39894228040143268f * expf(-0.5f * x * x);
    return 0.5f * (1 + erff(x * kRootHalf)) + x * density;
  } else if constexpr (Kind == ActivationKind::swiglu) {
    const float sigmoid = 1 / (1 + expf(-x));
    return sigmoid + x * sigmoid * (1 - sigmoid);
  } else if constexpr (Kind == ActivationKind::gelu_tanh || Kind == ActivationKind::geglu) {
    const float t = tanhf(kRootTwoOverPi * (x + kCubic * x * x * x));
    const float inner = kRootTwoOverPi * (1 + 3 * kCubic * x * x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
  } else if constexpr (Kind == ActivationKind::tanh) {
    const float t = tanhf(x);
    return 1 - t * t;
  } else {
    return 1;
  }
}

template <class N>
__host__ __device__ N* output_of(const Activation<N>& p) {
  return p.out;
}
template <class N>
__host__ __device__ N* output_of(const ActivationBackward<N>& p) {
  return p.d_x;
}

// Up to eight columns of a row.
template <class N>
__device__ void load_some(const N* from, int count, bool wide_loads, float (&x)[8]) {
  if (wide_loads && count == 8) return load8(from, x);
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = i < count ? to_float(from[i]) : 0.0f;
}
template <class N>
__device__ void store_some(N* to, int count, bool wide_stores, const float (&x)[8]) {
  if (wide_stores && count == 8) return store8(to, x);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (i < count) to[i] = from_float<N>(x[i]);
  }
}

// One thread per eight columns of a row: one Philox call yields the random numbers of eight
// columns.
template <ActivationKind Kind, template <class> class Arguments, class N>
__global__ void activation_kernel(const Arguments<N> p, const DropoutParameters dropout,
                                  bool aligned) {
  constexpr bool kBackward = std::is_same_v<Arguments<N>, ActivationBackward<N>>;
  const std::int64_t chunks = (p.width + 7) / 8;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.rows.capacity * chunks) return;
  const std::int64_t row = i / chunks, column = i % chunks * 8;
  const int count = static_cast<int>(min(p.width - column, std::int64_t{8}));
  float factor[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) factor[j] = 1;
  if (dropout.active()) {
    compute_dropout_factors(dropout, philox::key_of(*dropout.key),
                            static_cast<std::uint32_t>(column),
                            static_cast<std::uint32_t>(p.rows.position[row]),
                            static_cast<std::uint32_t>(p.rows.sentence[row]), factor);
  }
  if constexpr (kBackward) {
    float d[8];
    load_some(p.d_out + row * p.width + column, count, aligned, d);
#pragma unroll
    for (int j = 0; j < 8; ++j) factor[j] *= d[j];
  }
  if (row >= real_rows(p.rows)) {
#pragma unroll
    for (int j = 0; j < 8; ++j) factor[j] = 0;
  }
  if constexpr (is_gated(Kind)) {
    float gate[8], up[8], out[8];
    const N* x = p.x + row * 2 * p.width + column;
    load_some(x, count, aligned, gate);
    load_some(x + p.width, count, aligned, up);
    if constexpr (!kBackward) {
#pragma unroll
      for (int j = 0; j < 8; ++j) out[j] = value_of<Kind>(gate[j]) * up[j] * factor[j];
      store_some(output_of(p) + row * p.width + column, count, aligned, out);
    } else {
      float d_up[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        d_up[j] = factor[j] * value_of<Kind>(gate[j]);
        out[j] = factor[j] * up[j] * slope_of<Kind>(gate[j]);
      }
      N* to = output_of(p) + row * 2 * p.width + column;
      store_some(to, count, aligned, out);
      store_some(to + p.width, count, aligned, d_up);
    }
  } else {
    float x[8], out[8];
    load_some(p.x + row * p.width + column, count, aligned, x);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      out[j] = factor[j] * (kBackward ? slope_of<Kind>(x[j]) : value_of<Kind>(x[j]));
    }
    store_some(output_of(p) + row * p.width + column, count, aligned, out);
  }
}

template <template <class> class Arguments, class N>
void launch(CudaContext& ctx, const Arguments<N>& p) {
  const std::int64_t items = p.rows.capacity * ((p.width + 7) / 8);
  if (items == 0) return;
  bool aligned = p.width % 8 == 0 && rows_are_aligned(p.x, 0) && rows_are_aligned(output_of(p), 0);
  if constexpr (std::is_same_v<Arguments<N>, ActivationBackward<N>>) {
    aligned = aligned && rows_are_aligned(p.d_out, 0);
  }
  const auto launch_kind = [&]<ActivationKind Kind>() {
    activation_kernel<Kind><<<blocks_for(items, kThreads), kThreads, 0, ctx.stream()>>>(
        p, DropoutParameters(p.dropout), aligned);
  };
  switch (p.kind) {
    case ActivationKind::none:
      launch_kind.template operator()<ActivationKind::none>();
      break;
    case ActivationKind::relu:
      launch_kind.template operator()<ActivationKind::relu>();
      break;
    case ActivationKind::gelu:
      launch_kind.template operator()<ActivationKind::gelu>();
      break;
    case ActivationKind::gelu_tanh:
      launch_kind.template operator()<ActivationKind::gelu_tanh>();
      break;
    case ActivationKind::swiglu:
      launch_kind.template operator()<ActivationKind::swiglu>();
      break;
    case ActivationKind::tanh:
      launch_kind.template operator()<ActivationKind::tanh>();
      break;
    case ActivationKind::geglu:
      launch_kind.template operator()<ActivationKind::geglu>();
      break;
  }
  check_launch("activation");
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Activation<T>& p) {
  launch(ctx, native(p));
}
template void compute<Cuda>(CudaContext&, const Activation<float>&);
template void compute<Cuda>(CudaContext&, const Activation<BFloat16>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ActivationBackward<T>& p) {
  launch(ctx, native(p));
}
template void compute<Cuda>(CudaContext&, const ActivationBackward<float>&);
template void compute<Cuda>(CudaContext&, const ActivationBackward<BFloat16>&);

}  // namespace nunchi::kernels
