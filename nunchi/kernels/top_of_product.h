// The most likely tokens of rows whose scores are a product: rows times the vocabulary's table. The
// scores of some hundred rows are larger than a cache, and a search needs a few of each row; so a
// device may find the best of each tile of scores where it has computed them, and never store all.
#pragma once

#include "nunchi/kernels/product.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

template <class T>
struct TopOfProduct {
  Product<T, Accumulator<T>> product;  // M is allowed.top.rows or more; its c is null
  TopAllowed<Accumulator<T>> allowed;  // of the first rows; its logits, both of them, are null

  // The same with all scores [M, N] at `scores`, one kernel after the other.
  std::pair<Product<T, Accumulator<T>>, TopAllowed<Accumulator<T>>> parts(
      Accumulator<T>* scores) const {
    std::pair<Product<T, Accumulator<T>>, TopAllowed<Accumulator<T>>> both{product, allowed};
    both.first.c = both.second.bans.logits = scores;
    both.second.top.logits = scores;
    return both;
  }
  std::size_t score_bytes() const {
    return static_cast<std::size_t>(product.m * product.n) * sizeof(Accumulator<T>);
  }

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const TopOfProduct<T>& p);

}  // namespace nunchi::kernels
