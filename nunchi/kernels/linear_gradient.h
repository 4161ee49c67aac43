// Products of a linear layer's backward pass, fused with an activation's or a bias's gradient.
//
// They run other kernels, or one fused library call where that is faster; a profile then shows it
// in the label: "linear_backward_weight+bias".
#pragma once

#include <cstdint>

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/product.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// c = a · b times the derivative of relu or gelu_tanh; d_bias += the sum of c's rows.
template <class T>
struct GatedProduct {
  Product<T> product;  // without accumulate, bias and relu
  ActivationKind kind = ActivationKind::relu;
  const T* y = nullptr;                // [M, N]: relu's output or gelu_tanh's input
  const std::uint8_t* mask = nullptr;  // relu's mask as kept by the forward product; null: none
  Accumulator<T>* d_bias = nullptr;    // [N]; null: not wanted

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GatedProduct<T>& p);

// d_weight += d_yᵀ · x; d_bias += the sum of d_y's rows.
template <class T>
struct WeightGradient {
  Product<T, Accumulator<T>> product;  // with a transposed: d_y [K, M]
  Accumulator<T>* d_bias = nullptr;    // [M]; null: not wanted

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const WeightGradient<T>& p);

}  // namespace nunchi::kernels
