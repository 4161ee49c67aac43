#include "nunchi/kernels/optimizer.h"

#include <cmath>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

// The square root of each lane; the compiler turns the loop into one instruction.
template <class V>
[[gnu::always_inline]] inline V square_root(V x) {
  using T = Element<V>;
  if constexpr (std::is_same_v<V, T>) {
    return std::sqrt(x);
  } else {
    T lanes[kLanes<T>];
    store<V>(lanes, x);
    for (T& lane : lanes) lane = std::sqrt(lane);
    return load<V>(lanes);
  }
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Adam<T>& p) {
  const AdamSettings& settings = *p.settings;
  const double correction1 = 1 - std::pow(settings.beta1, static_cast<double>(settings.step));
  const double correction2 = 1 - std::pow(settings.beta2, static_cast<double>(settings.step));
  const T scale = static_cast<T>(p.report->scale);
  const T beta1 = static_cast<T>(settings.beta1), beta2 = static_cast<T>(settings.beta2);
  const T one_minus_beta1 = static_cast<T>(1 - settings.beta1),
          one_minus_beta2 = static_cast<T>(1 - settings.beta2);
  const T rate = static_cast<T>(settings.learning_rate / correction1);
  const T inverse_root = static_cast<T>(1 / std::sqrt(correction2));
  const T epsilon = static_cast<T>(settings.epsilon);
  const T decay_factor = static_cast<T>(1 - settings.learning_rate * settings.weight_decay);
  const auto update = [&](std::int64_t begin, std::int64_t end, T decay) {
    T *w = p.weights + begin, *g = p.gradients + begin, *m = p.first_moment + begin,
      *v = p.second_moment + begin;
    for_each_vector<T>(end - begin, [&]<class V>(std::int64_t i, V) {
      const V gradient = load<V>(g + i) * scale;
      const V first = load<V>(m + i) * beta1 + gradient * one_minus_beta1;
      const V second = load<V>(v + i) * beta2 + gradient * gradient * one_minus_beta2;
      const V step = rate * first / (square_root<V>(second) * inverse_root + epsilon);
      store<V>(w + i, load<V>(w + i) * decay - step);
      store<V>(m + i, first);
      store<V>(v + i, second);
      store<V>(g + i, V{});
    });
  };
  parallel_ranges(ctx, p.count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    if (scale == T(0)) {
      std::fill(p.gradients + begin, p.gradients + end, T(0));
      return;
    }
    const std::int64_t decay_end = std::clamp(p.decayed_count, begin, end);
    update(begin, decay_end, decay_factor);
    update(decay_end, end, T(1));
    if (p.bf16_weights == nullptr) return;
    for (std::int64_t i = begin; i < end; ++i) {
      p.bf16_weights[i] = BFloat16(static_cast<float>(p.weights[i]));
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const Adam<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Adam<double>&);
#endif

}  // namespace nunchi::kernels
