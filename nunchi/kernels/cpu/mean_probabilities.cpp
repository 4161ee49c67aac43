#include "nunchi/kernels/mean_probabilities.h"

#include <cmath>
#include <limits>

#include "nunchi/kernels/cpu/isa_version.h"
#include "nunchi/kernels/cpu/log_sum.h"
#include "nunchi/kernels/cpu/parallel.h"
#include "nunchi/kernels/cpu/simd.h"

namespace nunchi::kernels {
namespace {

// The natural logarithm of x, 1 <= x < 2^31. NaN stays NaN.
template <class V>
V logarithm(V x) {
  using T = Element<V>;
  if constexpr (sizeof(T) == 8) {
    V result = x;
    if constexpr (std::is_same_v<V, T>) {
      result = std::log(x);
    } else {
      for (int lane = 0; lane < kLanes<T>; ++lane) result[lane] = std::log(x[lane]);
    }
    return result;
  } else {
    // x = 2^e · m with m from sqrt(1/2) to sqrt(2); then the polynomial of Cephes in m - 1.
    using Bits = typename IntegersOf<V>::type;
    Bits bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const Bits exponent_bits = (bits >> 23) - 127;
    const Bits mantissa_bits = (bits & 0x7FFFFF) | 0x3F800000;
    V mantissa;
    __builtin_memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    V exponent;
    if constexpr (std::is_same_v<V, T>) {
      exponent = static_cast<T>(exponent_bits);
    } else {
      exponent = __builtin_convertvector(exponent_bits, V);
    }
    constexpr T kRootOfTwo = T(1.41421356237309504880);
    const V high = mantissa > kRootOfTwo ? splat<V>(T(1)) : V{};
    const V r = (mantissa - high * (mantissa * T(0.5))) - T(1);
    const V e = exponent + high;
    V p = splat<V>(T(7.0376836292e-2));
    constexpr T kCoefficients[] = {T(-1.1514610310e-1), T(1.1676998740e-1),  T(-1.2420140846e-1),
                                   T(1.4249322787e-1),  T(-1.6668057665e-1), T(2.0000714765e-1),
                                   T(-2.4999993993e-1), T(3.3333331174e-1)};
    for (const T coefficient : kCoefficients) p = p * r + coefficient;
    const V square = r * r;
    V result = p * r * square + e * T(-2.12194440e-4);
    result = (r + (result - square * T(0.5))) + e * T(0.693359375);
    return x != x ? x : result;  // NOLINT(misc-redundant-expression): finds NaN
  }
}

template <class T>
void mean_of_row(const MeanProbabilities<T>& p, std::int64_t row) {
  const std::int64_t first = row * p.vocabulary;
  T log_sums[MeanProbabilities<T>::kMaxMembers];
  for (int m = 0; m < p.members; ++m) {
    const T* x = p.logits[m] + first;
    log_sums[m] = static_cast<T>(log_sum_of_row(p.vocabulary, x, max_of_row(p.vocabulary, x)));
  }
  const T log_members = static_cast<T>(std::log(static_cast<double>(p.members)));
  for_each_vector<T>(p.vocabulary, [&]<class V>(std::int64_t i, V) {
    // Not -inf, so that tokens that no model allows get -inf instead of NaN.
    V highest = splat<V>(std::numeric_limits<T>::lowest());
    for (int m = 0; m < p.members; ++m) {
      highest = larger(highest, load<V>(p.logits[m] + first + i) - log_sums[m]);
    }
    V sum = V{};
    for (int m = 0; m < p.members; ++m) {
      sum += exponential<V>((load<V>(p.logits[m] + first + i) - log_sums[m]) - highest);
    }
    const V mean = highest + (logarithm<V>(sum) - log_members);
    store<V>(p.out + first + i, sum == V{} ? splat<V>(-std::numeric_limits<T>::infinity()) : mean);
  });
}

}  // namespace

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const MeanProbabilities<T>& p) {
  const std::int64_t grain = row_grain(p.vocabulary * p.members);
  parallel_ranges(ctx, p.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) mean_of_row(p, r);
  });
}
template void compute<Cpu<kIsa>>(CpuContext&, const MeanProbabilities<float>&);

#if NUNCHI_F64_VERSION
template void compute<Cpu<kIsa>>(CpuContext&, const MeanProbabilities<double>&);
#endif

}  // namespace nunchi::kernels
