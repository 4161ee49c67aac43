#include "nunchi/kernels/rotary.h"

#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/rows.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Rotary<T>& p) {
  const std::int64_t half = p.head_width / 2;
  const T direction = p.inverse ? T(-1) : T(1);
  const std::int64_t grain = row_grain(p.heads * p.head_width);
  parallel_ranges(ctx, count_of(p.rows), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* cosines = p.table + position_of(p.rows, r) * p.head_width;
      const T* sines = cosines + half;
      for (int h = 0; h < p.heads; ++h) {
        const T* x = p.x + r * p.x_stride + h * p.head_width;
        T* out = p.out + r * p.out_stride + h * p.head_width;
        for_each_vector<T>(half, [&]<class V>(std::int64_t i, V) {
          const V a = load<V>(x + i), b = load<V>(x + half + i);
          const V cosine = load<V>(cosines + i), sine = load<V>(sines + i) * direction;
          store<V>(out + i, a * cosine - b * sine);
          store<V>(out + half + i, b * cosine + a * sine);
        });
      }
    }
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const Rotary<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const Rotary<double>&);
#endif

}  // namespace nunchi::kernels
