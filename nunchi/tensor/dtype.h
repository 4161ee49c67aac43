// The types a tensor's elements can have.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "nunchi/base/error.h"

namespace nunchi {

enum class DType : std::uint8_t { f32, f64, bf16, i8, u8, i32, i64 };

// The upper half of a float: 8 bits of exponent, 7 of fraction. Storage only; compute in float.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  // Rounds to nearest even; a NaN stays a NaN.
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    bits = value != value ? static_cast<std::uint16_t>((word >> 16) | 0x40)
                          : static_cast<std::uint16_t>((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};

template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// The type in which numbers of type T are accumulated. Statistics, losses, log-probabilities and
// the gradients of parameters are kept in it, since rounding them to T would lose too much.
template <class T>
struct AccumulatorOf {
  using Type = T;
};
template <>
struct AccumulatorOf<BFloat16> {
  using Type = float;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::Type;

constexpr DType accumulator_type(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::i8:
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
  }
  return "?";
}

}  // namespace nunchi
