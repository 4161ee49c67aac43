#include "nunchi/ops/decode/next_hypotheses.h"

#include "nunchi/kernels/next_hypotheses.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

template <class S>
void next_hypotheses(const Tensor& hidden, const Variable& table,
                     const kernels::TopAllowedTokens<S>& allowed,
                     const kernels::BeamStep<S>& step) {
  constexpr const char* kName = "next_hypotheses";
  check_shape(kName, "hidden", hidden, {hidden.size(0), table.value().size(1)});
  check(allowed.top.rows <= hidden.size(0) && allowed.top.vocabulary == table.value().size(0),
        kName, "asked for more rows or tokens than hidden and table have");
  check(hidden.context().tape() == nullptr, kName,
        "it is inference-only but was called while a tape records");
  const ProductWeight weight = forward_weight(hidden.context(), table);
  dispatch(hidden, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<Accumulator<T>, S>) {
      auto product = product_of<T, S>(weight, hidden, {});
      product.label = "vocabulary";
      kernels::run(ctx, kernels::NextHypotheses<T>{.top = {.product = product, .allowed = allowed},
                                                   .step = step});
    } else {
      check(false, kName, "the candidates' type must be hidden's accumulator type");
    }
  });
}

template void next_hypotheses(const Tensor& hidden, const Variable& table,
                              const kernels::TopAllowedTokens<float>& allowed,
                              const kernels::BeamStep<float>& step);
template void next_hypotheses(const Tensor& hidden, const Variable& table,
                              const kernels::TopAllowedTokens<double>& allowed,
                              const kernels::BeamStep<double>& step);

}  // namespace nunchi
