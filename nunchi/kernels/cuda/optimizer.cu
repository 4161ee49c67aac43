#include "nunchi/kernels/optimizer.h"

#include "nunchi/kernels/cuda/common/device.h"

namespace nunchi::kernels {
namespace {

constexpr int kThreads = 256;

__global__ void clip_scale_kernel(ClipScale p) {
  const AdamSettings& settings = *p.settings;
  const double norm = sqrt(*p.squared_norm) / settings.tokens;
  const double clip =
      settings.max_norm > 0 && norm > settings.max_norm ? settings.max_norm / (norm + 1e-6) : 1.0;
  p.report->gradient_norm = norm;
  bool finite = isfinite(norm);
  for (std::int64_t i = 0; i < p.loss_count; ++i) finite = finite && isfinite(p.losses[i]);
  p.report->scale = finite ? clip / settings.tokens : 0.0;
}

// Values shared by all elements of a step, in f32.
struct StepNumbers {
  float scale, beta1, beta2, one_minus_beta1, one_minus_beta2, rate, inverse_root_correction2,
      epsilon, decay_factor;
};

__device__ StepNumbers step_numbers(const AdamSettings& settings, const AdamReport& report) {
  const double correction1 = 1 - pow(settings.beta1, static_cast<double>(settings.step));
  const double correction2 = 1 - pow(settings.beta2, static_cast<double>(settings.step));
  return {static_cast<float>(report.scale),
          static_cast<float>(settings.beta1),
          static_cast<float>(settings.beta2),
          static_cast<float>(1 - settings.beta1),
          static_cast<float>(1 - settings.beta2),
          static_cast<float>(settings.learning_rate / correction1),
          static_cast<float>(1 / sqrt(correction2)),
          static_cast<float>(settings.epsilon),
          static_cast<float>(1 - settings.learning_rate * settings.weight_decay)};
}

// Computes the same numbers as the CPU kernel.
__device__ void update(const StepNumbers& s, float decay, float g, float& w, float& m, float& v) {
  const float gradient = g * s.scale;
  m = m * s.beta1 + gradient * s.one_minus_beta1;
  v = v * s.beta2 + gradient * gradient * s.one_minus_beta2;
  w = w * decay - s.rate * m / (sqrtf(v) * s.inverse_root_correction2 + s.epsilon);
}

// Four neighbouring elements per thread: flat buffers are padded to multiples of sixteen. Launched
// normally: kernels that read the new weights before wait_for_previous_kernel() must not start
// before it ends.
__global__ void __launch_bounds__(kThreads) adam_kernel(Adam<float> p) {
  __shared__ StepNumbers shared;
  if (threadIdx.x == 0) shared = step_numbers(*p.settings, *p.report);
  __syncthreads();
  const StepNumbers s = shared;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads * 4;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4; i < p.count;
       i += step) {
    if (i + 4 > p.count) {
      for (std::int64_t j = i; j < p.count; ++j) {
        if (s.scale != 0) {
          update(s, j < p.decayed_count ? s.decay_factor : 1.0f, p.gradients[j], p.weights[j],
                 p.first_moment[j], p.second_moment[j]);
          if (p.bf16_weights != nullptr)
            reinterpret_cast<__nv_bfloat16*>(p.bf16_weights)[j] = __float2bfloat16(p.weights[j]);
        }
        p.gradients[j] = 0;
      }
      break;
    }
    if (s.scale != 0) {
      const float4 g = *reinterpret_cast<const float4*>(p.gradients + i);
      float4 w = *reinterpret_cast<float4*>(p.weights + i);
      float4 m = *reinterpret_cast<float4*>(p.first_moment + i);
      float4 v = *reinterpret_cast<float4*>(p.second_moment + i);
      const auto decay = [&](int j) { return i + j < p.decayed_count ? s.decay_factor : 1.0f; };
      update(s, decay(0), g.x, w.x, m.x, v.x);
      update(s, decay(1), g.y, w.y, m.y, v.y);
      update(s, decay(2), g.z, w.z, m.z, v.z);
      update(s, decay(3), g.w, w.w, m.w, v.w);
      *reinterpret_cast<float4*>(p.weights + i) = w;
      *reinterpret_cast<float4*>(p.first_moment + i) = m;
      *reinterpret_cast<float4*>(p.second_moment + i) = v;
      if (p.bf16_weights != nullptr) {
        const __nv_bfloat162 a = __floats2bfloat162_rn(w.x, w.y);
        const __nv_bfloat162 b = __floats2bfloat162_rn(w.z, w.w);
        *reinterpret_cast<uint2*>(p.bf16_weights + i) = make_uint2(
            *reinterpret_cast<const unsigned*>(&a), *reinterpret_cast<const unsigned*>(&b));
      }
    }
    *reinterpret_cast<float4*>(p.gradients + i) = make_float4(0, 0, 0, 0);
  }
}

}  // namespace

template <>
void compute<Cuda>(CudaContext& ctx, const ClipScale& p) {
  clip_scale_kernel<<<1, 1, 0, ctx.stream()>>>(p);
  check_launch(p.name());
}

template <>
void compute<Cuda>(CudaContext& ctx, const Adam<float>& p) {
  if (p.count == 0) return;
  const unsigned blocks =
      std::min(blocks_for(p.count, kThreads * 4), static_cast<unsigned>(ctx.multiprocessors()) * 8);
  adam_kernel<<<blocks, kThreads, 0, ctx.stream()>>>(p);
  check_launch(p.name());
}

}  // namespace nunchi::kernels
