// A linear layer's product with gelu_tanh behind it, on the way forward.
#pragma once

#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

// c = a · b + bias, as the product says, and out = gelu_tanh(c). A device's library may do both at
// once, and take gelu of c before that is rounded. Where c and out are one, only gelu stays.
template <class T>
struct GeluProduct {
  Product<T> product;  // which adds to nothing and has no relu
  T* out = nullptr;    // [M, N]

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const GeluProduct<T>& p);

}  // namespace nunchi::kernels
