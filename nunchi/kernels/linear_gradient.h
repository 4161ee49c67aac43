// Products of a linear layer's backward pass, fused with the gradient of an activation or a bias.
//
// They run other kernels, or one fused library call where that is faster. The label in a profile
// tells which: "linear_backward_weight+bias" is fused.
#pragma once

#include <cstdint>

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/product.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// c = (a · b) ⊙ f'(y), where f is relu or gelu_tanh; d_bias += the sum of c's rows.
template <class T>
struct ActivationGradientProduct {
  Product<T> product;  // must not have accumulate, bias or relu
  ActivationKind kind = ActivationKind::relu;
  const T* y = nullptr;                // [M, N]: the output of relu or the input of gelu_tanh
  const std::uint8_t* mask = nullptr;  // Product::mask of the forward pass; may be null
  Accumulator<T>* d_bias = nullptr;    // [N]; null: not computed

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ActivationGradientProduct<T>& p);

// d_weight += d_yᵀ · x; d_bias += the sum of d_y's rows.
template <class T>
struct WeightGradient {
  Product<T, Accumulator<T>> product;  // with transpose_a; a is d_y [K, M], b is x [K, N]
  Accumulator<T>* d_bias = nullptr;    // [M]; null: not computed

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const WeightGradient<T>& p);

}  // namespace nunchi::kernels
