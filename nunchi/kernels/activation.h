// Element-wise activation functions with an optional dropout after them: forward and backward.
#pragma once

#include <cstdint>

#include "nunchi/kernels/dropout.h"
#include "nunchi/kernels/rows.h"
#include "nunchi/kernels/run.h"

namespace nunchi::kernels {

// gelu is exact (erf); gelu_tanh is GPT-2's approximation. The gated kinds split a row into two
// halves: silu(first) * second and gelu_tanh(first) * second. All other kinds read as many columns
// as they write.
enum class ActivationKind : std::uint8_t { none, relu, gelu, gelu_tanh, swiglu, tanh, geglu };

constexpr bool is_gated(ActivationKind kind) {
  return kind == ActivationKind::swiglu || kind == ActivationKind::geglu;
}

constexpr std::int64_t input_width(ActivationKind kind, std::int64_t width) {
  return is_gated(kind) ? 2 * width : width;
}

// out = dropout(f(x)). `out` may alias `x` where the widths agree.
template <class T>
struct Activation {
  ActivationKind kind = ActivationKind::none;
  Rows rows;
  std::int64_t width = 0;  // columns of out
  Dropout dropout;
  const T* x = nullptr;  // [T, input_width]
  T* out = nullptr;      // [T, width]

  const char* name() const { return "activation"; }
  Work work() const {
    return {.bytes = static_cast<double>(rows.capacity * (input_width(kind, width) + width)) *
                     sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const Activation<T>& p);

// d_x = d_out * dropout * f'(x). `d_x` may alias `d_out` where the widths agree.
template <class T>
struct ActivationBackward {
  ActivationKind kind = ActivationKind::none;
  Rows rows;
  std::int64_t width = 0;
  Dropout dropout;
  const T* x = nullptr;      // [T, input_width]; for relu, its output serves as well
  const T* d_out = nullptr;  // [T, width]
  T* d_x = nullptr;          // [T, input_width]

  const char* name() const { return "activation_backward"; }
  Work work() const {
    return {.bytes = static_cast<double>(rows.capacity * (2 * input_width(kind, width) + width)) *
                     sizeof(T)};
  }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ActivationBackward<T>& p);

}  // namespace nunchi::kernels
