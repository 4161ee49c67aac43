// The output projection fused with top-k: the most likely allowed tokens of each row, from hidden
// rows times the vocabulary's table. The logits of a few hundred rows do not fit into a cache, and
// a search needs only a few per row; so a device may find the best logits of each tile on chip and
// never materialise the whole matrix.
#pragma once

#include "nunchi/kernels/product.h"
#include "nunchi/kernels/search.h"

namespace nunchi::kernels {

template <class T>
struct ProjectionTopTokens {
  Product<T, Accumulator<T>> product;  // m >= allowed.top.rows; c must be null
  // Of the product's first rows; bans.logits and top.logits must be null.
  TopAllowedTokens<Accumulator<T>> allowed;

  // The unfused equivalent: two kernels to be run one after the other, with the logits [M, N] in
  // `logits`.
  std::pair<Product<T, Accumulator<T>>, TopAllowedTokens<Accumulator<T>>> unfused(
      Accumulator<T>* logits) const {
    std::pair<Product<T, Accumulator<T>>, TopAllowedTokens<Accumulator<T>>> both{product, allowed};
    both.first.c = both.second.bans.logits = logits;
    both.second.top.logits = logits;
    return both;
  }
  // Size of the buffer for unfused().
  std::size_t logits_bytes() const {
    return static_cast<std::size_t>(product.m * product.n) * sizeof(Accumulator<T>);
  }

  static constexpr bool kIsComposite = true;
  static constexpr bool kIsaIndependent = true;
  const char* name() const { return product.name(); }
  Work work() const { return product.work(); }
};

template <class Target, class T>
void compute(ContextOf<Target>& ctx, const ProjectionTopTokens<T>& p);

}  // namespace nunchi::kernels
