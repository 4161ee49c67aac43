#include "nunchi/kernels/memory.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 15;

template <class T>
void fill(CpuContext& ctx, const Fill<T>& p) {
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

template <class From, class To>
void convert(CpuContext& ctx, const Convert<From, To>& p) {
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

template <class T>
void add_into(CpuContext& ctx, const AddInto<T>& p) {
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, p.width));
  parallel_ranges(ctx, p.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = p.x + r * p.x_stride;
      T* out = p.out + r * p.out_stride;
      over_row<T>(p.width, [&]<class V>(std::int64_t i, V) {
        store<V>(out + i, load<V>(out + i) + load<V>(x + i));
      });
    }
  });
}

template <class T>
void scale(CpuContext& ctx, const Scale<T>& p) {
  parallel_ranges(ctx, p.count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    over_row<T>(end - begin, [&]<class V>(std::int64_t i, V) {
      store<V>(p.out + begin + i, load<V>(p.x + begin + i) * static_cast<T>(p.factor));
    });
  });
}

// A number in [0, 1) of 53 bits.
double unit(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53;
}

template <class T>
void random_fill(CpuContext& ctx, const RandomFill<T>& p) {
  const philox::Key key = philox::key_of(p.key);
  parallel_ranges(ctx, p.count, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      const philox::Words words = philox::bits(
          {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, p.place},
          key);
      const double u = unit(words[0], words[1]), v = unit(words[2], words[3]);
      // Box and Muller's; 1 - u is never zero.
      const double draw =
          p.distribution == RandomFill<T>::Distribution::uniform
              ? 2 * u - 1
              : std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586476925 * v);
      p.out[i] = static_cast<T>(p.scale * draw);
    }
  });
}

void quantize(CpuContext& ctx, const QuantizeRows& p) {
  parallel_ranges(ctx, p.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* from = p.from + r * p.width;
      float largest = 0;
      for (std::int64_t i = 0; i < p.width; ++i) largest = std::max(largest, std::fabs(from[i]));
      const float scale = largest >= std::numeric_limits<float>::min() ? largest / 127 : 1;
      p.scale[r] = scale;
      for (std::int64_t i = 0; i < p.width; ++i) {
        p.to[r * p.width + i] = static_cast<std::int8_t>(std::nearbyint(from[i] / scale));
      }
    }
  });
}

void dequantize(CpuContext& ctx, const DequantizeRows& p) {
  parallel_ranges(ctx, p.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t i = 0; i < p.width; ++i) {
        p.to[r * p.width + i] = static_cast<float>(p.from[r * p.width + i]) * p.scale[r];
      }
    }
  });
}

}  // namespace

template <>
void compute<kIsa>(CpuContext& ctx, const Fill<float>& p) {
  fill(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Fill<double>& p) {
  fill(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Fill<std::int32_t>& p) {
  fill(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Fill<BFloat16>& p) {
  fill(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Convert<double, BFloat16>& p) {
  convert(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Convert<float, BFloat16>& p) {
  convert(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Convert<BFloat16, float>& p) {
  convert(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Convert<float, double>& p) {
  convert(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Convert<double, float>& p) {
  convert(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Convert<BFloat16, double>& p) {
  convert(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const AddInto<float>& p) {
  add_into(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const AddInto<double>& p) {
  add_into(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Scale<float>& p) {
  scale(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const Scale<double>& p) {
  scale(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const RandomFill<float>& p) {
  random_fill(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const RandomFill<double>& p) {
  random_fill(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const QuantizeRows& p) {
  quantize(ctx, p);
}
template <>
void compute<kIsa>(CpuContext& ctx, const DequantizeRows& p) {
  dequantize(ctx, p);
}

}  // namespace nunchi::kernels::cpu
