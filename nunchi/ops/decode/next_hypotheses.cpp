#include "nunchi/ops/decode/next_hypotheses.h"

#include "nunchi/kernels/next_hypotheses.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

template <class S>
void next_hypotheses(const Tensor& hidden, const Variable& table,
                     const kernels::TopAllowed<S>& allowed, const kernels::BeamStep<S>& step) {
  constexpr const char* kName = "next_hypotheses";
  check_shape(kName, "hidden", hidden, {hidden.size(0), table.value().size(1)});
  check(allowed.top.rows <= hidden.size(0) && allowed.top.vocabulary == table.value().size(0),
        kName, "rows or tokens are more than there are");
  check(hidden.context().tape() == nullptr, kName, "it is not for what is recorded");
  const PackedWeight weight = pack_for_forward(table);
  dispatch(hidden, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<Summed<T>, S>) {
      const T* packed = weight.packed.defined() ? weight.packed.data<T>() : nullptr;
      kernels::run(ctx,
                   kernels::NextHypotheses<T>{.top = {.product = {.m = hidden.size(0),
                                                                  .n = table.value().size(0),
                                                                  .k = hidden.size(1),
                                                                  .a = hidden.data<T>(),
                                                                  .b = weight.plain.data<T>(),
                                                                  .transpose_b = weight.transposed,
                                                                  .packed_b = packed,
                                                                  .label = "vocabulary"},
                                                      .allowed = allowed},
                                              .step = step});
    } else {
      check(false, kName, "candidates are of another type than sums");
    }
  });
}

template void next_hypotheses(const Tensor& hidden, const Variable& table,
                              const kernels::TopAllowed<float>& allowed,
                              const kernels::BeamStep<float>& step);
template void next_hypotheses(const Tensor& hidden, const Variable& table,
                              const kernels::TopAllowed<double>& allowed,
                              const kernels::BeamStep<double>& step);

}  // namespace nunchi
