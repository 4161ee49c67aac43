// Forward product of a linear layer followed by gelu_tanh.
#pragma once

#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

// c = a · b + bias as `product` says, and out = gelu_tanh(c). A device's library may fuse both and
// take gelu of c before c is rounded. If c and out are the same memory, only gelu's result is kept.
template <class T>
struct GeluProduct {
  Product<T> product;  // without accumulate and relu
  T* out = nullptr;    // [M, N]

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GeluProduct<T>& p);

}  // namespace nunchi::kernels
