// A normalisation and the product that follows it, as one kernel: in a decode step each of them
// takes less time than launching a kernel.
#pragma once

#include "nunchi/kernels/norm.h"
#include "nunchi/kernels/product.h"

namespace nunchi::kernels {

template <class T, class C = T>
struct NormProduct {
  ResidualNorm<T> norm;
  Product<T, C> product;  // a = norm.out, m = norm.rows.capacity, k = norm.width

  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.label; }
  Work work() const {
    return {.flops = product.work().flops, .bytes = norm.work().bytes + product.work().bytes};
  }
};

template <class Target, class T, class C>
void compute(ContextOf<Target>& ctx, const NormProduct<T, C>& p);

}  // namespace nunchi::kernels
