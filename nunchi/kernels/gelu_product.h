// The product of a linear layer followed by gelu_tanh, in the forward pass.
#pragma once

#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

// c = a · b + bias (`product`), and out = gelu_tanh(c). A device's library may fuse both and apply
// gelu_tanh before c is rounded. c and out may be the same buffer; then only `out` is kept.
template <class T>
struct GeluProduct {
  Product<T> product;  // must not have accumulate or relu
  T* out = nullptr;    // [M, N]

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GeluProduct<T>& p);

}  // namespace nunchi::kernels
