#include "nunchi/kernels/memory.h"

#include <cmath>
#include <cstring>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {
namespace {

constexpr std::int64_t kGrain = 1 << 15;

// A number in [0, 1) with 53 random bits.
double unit_interval(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53;
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Fill<T>& p) {
  if (p.rows == 1) {
    parallel_ranges(ctx, p.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::fill(p.out + begin, p.out + end, p.value);
    });
    return;
  }
  parallel_ranges(ctx, p.rows,
                  std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, p.count)),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t r = begin; r < end; ++r) {
                      std::fill_n(p.out + r * p.stride, p.count, p.value);
                    }
                  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const Fill<float>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Fill<std::int32_t>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Fill<BFloat16>&);

template <class Target, class From, class To>
void compute(ContextOf<Target>& ctx, const Convert<From, To>& p) {
  parallel_ranges(ctx, p.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<To, BFloat16>) {
        p.to[i] = BFloat16(static_cast<float>(p.from[i]));
      } else if constexpr (std::is_same_v<From, BFloat16>) {
        p.to[i] = static_cast<To>(static_cast<float>(p.from[i]));
      } else {
        p.to[i] = static_cast<To>(p.from[i]);
      }
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const Convert<float, BFloat16>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Convert<BFloat16, float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const AddInto<T>& p) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, p.width));
  parallel_ranges(ctx, p.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = p.x + r * p.x_stride;
      T* out = p.out + r * p.out_stride;
      for_each_vector<T>(p.width, [&]<class V>(std::int64_t i, V) {
        store<V>(out + i, load<V>(out + i) + load<V>(x + i));
      });
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const AddInto<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Scale<T>& p) {
  parallel_ranges(ctx, p.count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for_each_vector<T>(end - begin, [&]<class V>(std::int64_t i, V) {
      store<V>(p.out + begin + i, load<V>(p.x + begin + i) * static_cast<T>(p.factor));
    });
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const Scale<float>&);

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const RandomFill<T>& p) {
  const philox::Key key = philox::key_of(p.key);
  parallel_ranges(ctx, p.count, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      const philox::Words words =
          philox::bits({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                        0, p.tensor_id},
                       key);
      const double u = unit_interval(words[0], words[1]), v = unit_interval(words[2], words[3]);
      // Box-Muller; 1 - u is never zero.
      const double draw =
          p.distribution == RandomFill<T>::Distribution::uniform
              ? 2 * u - 1
              : std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586476925 * v);
      p.out[i] = static_cast<T>(p.scale * draw);
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const RandomFill<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Fill<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Convert<double, BFloat16>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Convert<float, double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Convert<double, float>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Convert<BFloat16, double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const AddInto<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const Scale<double>&);
template void compute<Cpu<kIsa>>(CpuContext&, const RandomFill<double>&);
#endif

}  // namespace nunchi::kernels
