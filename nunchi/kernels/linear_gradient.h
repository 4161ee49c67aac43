// Products of a linear layer's way back, with what may ride on them: an activation's gradient, a
// bias's.
//
// They are made of other kernels; where a device's library does several at once and that is faster,
// it does, and the label in a profile says so: "linear_backward_weight+bias".
#pragma once

#include <cstdint>

#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/product.h"
#include "nunchi/tensor/dtype.h"

namespace nunchi::kernels {

// c = a · b times the derivative of relu or gelu_tanh; d_bias += the sum of c's rows.
template <class T>
struct GatedProduct {
  Product<T> product;  // which adds to nothing and has neither bias nor relu of its own
  ActivationKind kind = ActivationKind::relu;
  const T* y = nullptr;                // [M, N]: what came out of relu, or went into gelu_tanh
  const std::uint8_t* mask = nullptr;  // what the product that made relu's y kept; null: nothing
  Summed<T>* d_bias = nullptr;         // [N]; null: nobody wants it

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
  Product<T, Summed<T>> product;  // of a, transposed: d_y [K, M]
  Summed<T>* d_bias = nullptr;    // [M]; null: nobody wants it

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const WeightGradient<T>& p);

}  // namespace nunchi::kernels
