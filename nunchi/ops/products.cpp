#include "nunchi/ops/products.h"

#include "nunchi/kernels/product.h"
#include "nunchi/kernels/reduce.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// The product reads b as [K, N]: the matrix itself, or its transpose.
Tensor pack(const Tensor& matrix, bool transposed) {
  Tensor packed;
  dispatch(matrix, [&]<class T>(auto& ctx) {
    kernels::PackMatrix<T> job{.n = matrix.size(transposed ? 0 : 1),
                               .k = matrix.size(transposed ? 1 : 0),
                               .b = matrix.data<T>(),
                               .transpose_b = transposed};
    if constexpr (kernels::kPacks<std::remove_cvref_t<decltype(ctx)>>) {
      const std::int64_t elements = kernels::packed_elements(ctx, job);
      if (elements == 0) return;
      packed = Tensor::empty(matrix.context(), matrix.dtype(), {elements});
      job.packed = packed.data<T>();
      kernels::run(ctx, job);
    }
  });
  return packed;
}

}  // namespace

PackedWeight pack_for_forward(const Variable& weight) {
  const Tensor& plain = weight.value();
  if (plain.context().tape() != nullptr) return {plain, pack(plain, true), true};
  Variable::PackedForm& kept = weight.packed_form();
  if (!kept.tensor.defined() || kept.version != weight.version()) {
    kept = {pack(plain, true), weight.version()};
  }
  return {plain, kept.tensor, true};
}

PackedWeight pack_for_backward(const Variable& weight) {
  return {weight.value(), pack(weight.value(), false), false};
}

void multiply(const Tensor& x, const PackedWeight& weight, const Tensor& out,
              const ProductOptions& options) {
  dispatch(x, [&]<class T>(auto& ctx) {
    const auto into = [&]<class C>() {
      kernels::run(ctx, kernels::Product<T, C>{
                            .m = x.size(0),
                            .n = weight.plain.size(weight.transposed ? 0 : 1),
                            .k = weight.plain.size(weight.transposed ? 1 : 0),
                            .a = x.data<T>(),
                            .b = weight.plain.data<T>(),
                            .transpose_b = weight.transposed,
                            .packed_b = weight.packed.defined() ? weight.packed.data<T>() : nullptr,
                            .c = out.data<C>(),
                            .accumulate = options.accumulate,
                            .bias = options.bias.defined() ? options.bias.data<T>() : nullptr,
                            .relu = options.relu,
                            .label = options.label});
    };
    if (out.dtype() == x.dtype()) {
      into.template operator()<T>();
    } else {
      into.template operator()<Summed<T>>();
    }
  });
}

void add_outer(const Tensor& d_y, const Tensor& x, const Tensor& d_weight, const char* label) {
  // Packing x pays when many rows of d_weight read it.
  constexpr std::int64_t kManyRows = 1024;
  const Tensor packed = d_y.size(1) >= kManyRows ? pack(x, false) : Tensor();
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Product<T, Summed<T>>{
                          .m = d_y.size(1),
                          .n = x.size(1),
                          .k = x.size(0),
                          .a = d_y.data<T>(),
                          .transpose_a = true,
                          .b = x.data<T>(),
                          .packed_b = packed.defined() ? packed.data<T>() : nullptr,
                          .c = d_weight.data<Summed<T>>(),
                          .accumulate = true,
                          .label = label});
  });
}

void add_column_sum(const Tensor& d_y, const Tensor& d_bias) {
  dispatch(d_y, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::ColumnSum<T>{.rows = d_y.size(0),
                                            .width = d_y.size(1),
                                            .x = d_y.data<T>(),
                                            .out = d_bias.data<Summed<T>>()});
  });
}

}  // namespace nunchi
