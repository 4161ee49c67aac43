// Vectors of the instruction set that is being compiled for, based on the compiler's vector types.
//
// Kernels are written once for any element type and vector width: the body of a loop takes a vector
// or, at the end of a row, a single element (for_each_vector).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "nunchi/kernels/cpu/isa_version.h"

namespace nunchi::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  using type __attribute__((vector_size(kVectorBytes))) = T;
};
template <class T>
using Vec = typename VectorOf<T>::type;

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// The element type of a vector type; of float and double, the type itself.
template <class V>
struct ElementOf {
  using type = std::remove_cvref_t<decltype(std::declval<V>()[0])>;
};
template <>
struct ElementOf<float> {
  using type = float;
};
template <>
struct ElementOf<double> {
  using type = double;
};
template <class V>
using Element = typename ElementOf<V>::type;

// The integer type with the size of T.
template <class T>
using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
template <class V>
struct IntegersOf {
  using type = Vec<Integer<Element<V>>>;
};
template <>
struct IntegersOf<float> {
  using type = std::int32_t;
};
template <>
struct IntegersOf<double> {
  using type = std::int64_t;
};

template <class V>
[[gnu::always_inline]] inline V load(const Element<V>* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
[[gnu::always_inline]] inline void store(Element<V>* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

template <class V>
[[gnu::always_inline]] inline V splat(Element<V> value) {
  if constexpr (std::is_same_v<V, Element<V>>) {
    return value;
  } else {
    return value - V{};
  }
}

template <class V>
[[gnu::always_inline]] inline V larger(V a, V b) {
  return a > b ? a : b;
}

// Rotates the lanes of v by `By`.
template <int By, class V, int... I>
[[gnu::always_inline]] inline V rotated(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, ((I + By) % static_cast<int>(sizeof...(I)))...);
}

// Reduces all lanes by f: lane i with lane i + W/2, then with lane i + W/4, …
template <int By, class T, class F>
[[gnu::always_inline]] inline Vec<T> reduced(Vec<T> v, F&& f) {
  if constexpr (By == 0) {
    return v;
  } else {
    const auto lanes = std::make_integer_sequence<int, kLanes<T>>{};
    return reduced<By / 2, T>(f(v, rotated<By>(v, lanes)), f);
  }
}

// a · b + c, rounded once where the instruction set can. Written with intrinsics: the compiler may
// fuse the same sum in one loop and not in another, and a row's bits would depend on its
// neighbours.
template <class V>
[[gnu::always_inline]] inline V multiply_add(V a, V b, V c) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<Element<V>, float>) {
    return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  } else {
    return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
  }
#elif defined(__FMA__)
  if constexpr (std::is_same_v<Element<V>, float>) {
    return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  } else {
    return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  }
#else
  return a * b + c;
#endif
}

template <class T>
[[gnu::always_inline]] inline T sum_of(Vec<T> v) {
  return reduced<kLanes<T> / 2, T>(v, [](Vec<T> a, Vec<T> b) { return a + b; })[0];
}

template <class T>
[[gnu::always_inline]] inline T max_of(Vec<T> v) {
  return reduced<kLanes<T> / 2, T>(v, [](Vec<T> a, Vec<T> b) { return larger(a, b); })[0];
}

// Calls body(i, V{}) for vectors at i = 0, W, 2 W, … and then body(i, T{}) for the remaining
// elements.
template <class T, class F>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t width, F&& body) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= width; i += kLanes<T>) body(i, Vec<T>{});
  for (; i < width; ++i) body(i, T{});
}

// The sum of a row: one partial sum per lane, then the sum of the lanes in a fixed order.
template <class T>
struct RowSum {
  Vec<T> lanes{};
  T rest{};
  [[gnu::always_inline]] void add(Vec<T> value) { lanes += value; }
  [[gnu::always_inline]] void add(T value) { rest += value; }
  [[gnu::always_inline]] T total() const { return sum_of<T>(lanes) + rest; }
};

template <class T>
struct RowMax {
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();
  Vec<T> lanes = splat<Vec<T>>(kLowest);
  T rest = kLowest;
  [[gnu::always_inline]] void add(Vec<T> value) { lanes = larger(lanes, value); }
  [[gnu::always_inline]] void add(T value) { rest = larger(rest, value); }
  [[gnu::always_inline]] T total() const { return larger(max_of<T>(lanes), rest); }
};

// e^r - 1 for |r| <= ln 2 / 2, accurate for small r, too.
template <class V>
[[gnu::always_inline]] inline V exponential_minus_one(V r) {
  using T = Element<V>;
  V p;
  if constexpr (sizeof(T) == 4) {
    p = splat<V>(T(1.9875691500e-4));
    p = p * r + T(1.3981999507e-3);
    p = p * r + T(8.3334519073e-3);
    p = p * r + T(4.1665795894e-2);
    p = p * r + T(1.6666665459e-1);
    p = p * r + T(5.0000001201e-1);
    return p * (r * r) + r;
  } else {
    // The Taylor series to r^13 leaves less than half a unit in the last place.
    p = splat<V>(T(1.0 / 6227020800.0));
    constexpr T kInverseFactorials[] = {T(1.0 / 479001600.0),
                                        T(1.0 / 39916800.0),
                                        T(1.0 / 3628800.0),
                                        T(1.0 / 362880.0),
                                        T(1.0 / 40320.0),
                                        T(1.0 / 5040.0),
                                        T(1.0 / 720.0),
                                        T(1.0 / 120.0),
                                        T(1.0 / 24.0),
                                        T(1.0 / 6.0),
                                        T(0.5),
                                        T(1.0)};
    for (const T coefficient : kInverseFactorials) p = p * r + coefficient;
    return p * r;
  }
}

// e^x = 2^n · e^r with |r| <= ln 2 / 2. Below the logarithm of the smallest normal number, -inf
// included, the result is 0 or nearly 0; NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline V exponential(V x) {
  using T = Element<V>;
  using Bits = typename IntegersOf<V>::type;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kLog2E = T(1.44269504088896340736);
  constexpr T kLn2High = kSingle ? T(0.693359375) : T(6.93145751953125e-1);
  constexpr T kLn2Low = kSingle ? T(-2.12194440e-4) : T(1.42860682030941723212e-6);
#if defined(__AVX512F__)
  // One instruction multiplies by 2^n, underflowing to 0 and overflowing to infinity. max and min
  // return their second operand if one is NaN.
  if constexpr (std::is_same_v<V, Vec<float>>) {
    const __m512 clipped =
        _mm512_min_ps(_mm512_set1_ps(150), _mm512_max_ps(_mm512_set1_ps(-150), (__m512)x));
    const __m512 n = _mm512_roundscale_ps((__m512)((V)clipped * kLog2E), 0);
    const V r = ((V)clipped - (V)n * kLn2High) - (V)n * kLn2Low;
    return (V)_mm512_scalef_ps((__m512)(exponential_minus_one<V>(r) + T(1)), n);
  }
#endif
  constexpr int kFraction = kSingle ? 23 : 52;
  constexpr T kLow = kSingle ? T(-87.3) : T(-708.3);
  constexpr T kHigh = kSingle ? T(88.7) : T(709.7);
  constexpr T kRounder = kSingle ? T(12582912.0) : T(6755399441055744.0);  // 1.5 · 2^fraction
  const V clipped_low = x < kLow ? splat<V>(kLow) : x;
  const V clipped = clipped_low > kHigh ? splat<V>(kHigh) : clipped_low;
  const V shifted = clipped * kLog2E + kRounder;
  const V n = shifted - kRounder;
  const V p = exponential_minus_one<V>((clipped - n * kLn2High) - n * kLn2Low) + T(1);
  // Adding kRounder left n in the low bits of `shifted`; they are moved to the exponent.
  Bits exponent;
  __builtin_memcpy(&exponent, &shifted, sizeof exponent);
  Bits bits;
  __builtin_memcpy(&bits, &p, sizeof bits);
  using Unsigned = std::make_unsigned_t<Integer<T>>;
  if constexpr (std::is_same_v<V, T>) {
    bits = static_cast<Integer<T>>(static_cast<Unsigned>(bits) +
                                   (static_cast<Unsigned>(exponent) << kFraction));
  } else {
    bits += exponent << kFraction;
  }
  V result;
  __builtin_memcpy(&result, &bits, sizeof result);
  result = x < kLow ? V{} : result;
  result = x > kHigh ? splat<V>(std::numeric_limits<T>::infinity()) : result;
  return x != x ? x : result;  // NOLINT(misc-redundant-expression): finds NaN
}

}  // namespace
}  // namespace nunchi::kernels
