#include "nunchi/ops/top_of_product.h"

#include "nunchi/kernels/top_of_product.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

template <class S>
void find(const Tensor& hidden, const Variable& table, const kernels::TopAllowed<S>& allowed) {
  check_shape("top_of_product", "hidden", hidden, {hidden.size(0), table.value().size(1)});
  check(allowed.top.rows <= hidden.size(0) && allowed.top.vocabulary == table.value().size(0),
        "top_of_product", "rows or tokens are more than there are");
  const PackedWeight weight = pack_for_forward(table);
  dispatch(hidden, [&]<class T>(auto& ctx) {
    if constexpr (std::is_same_v<Summed<T>, S>) {
      kernels::run(
          ctx,
          kernels::TopOfProduct<T>{
              .product = {.m = hidden.size(0),
                          .n = table.value().size(0),
                          .k = hidden.size(1),
                          .a = hidden.data<T>(),
                          .b = weight.plain.data<T>(),
                          .transpose_b = weight.transposed,
                          .packed_b = weight.packed.defined() ? weight.packed.data<T>() : nullptr,
                          .label = "vocabulary"},
              .allowed = allowed});
    } else {
      check(false, "top_of_product", "candidates are of another type than sums");
    }
  });
}

}  // namespace

void top_of_product(const Tensor& hidden, const Variable& table,
                    const kernels::TopAllowed<float>& allowed) {
  find(hidden, table, allowed);
}
void top_of_product(const Tensor& hidden, const Variable& table,
                    const kernels::TopAllowed<double>& allowed) {
  find(hidden, table, allowed);
}

}  // namespace nunchi
