#include "nunchi/ops/decode/norm_linear.h"

#include "nunchi/kernels/norm_product.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

NormLinearResult norm_linear(const Tensor& residual, const Tensor& branch, const Ragged& batch,
                             const Norm& norm, const Linear& layer) {
  const Tensor& w = layer.weight.value();
  ContextBase& context = residual.context();
  check(context.tape() == nullptr, "norm_linear",
        "it is inference-only but was called while a tape records");
  check_shape("norm_linear", "residual", residual, {batch.capacity, w.size(1)});
  if (branch.defined()) check_shape("norm_linear", "branch", branch, residual.shape());
  check_shape("norm_linear", "gamma", norm.gamma.value(), {w.size(1)});

  const DType dtype = residual.dtype();
  const Tensor mean = Tensor::empty(context, accumulator_type(dtype), {batch.capacity});
  const Tensor rstd = Tensor::empty(context, accumulator_type(dtype), {batch.capacity});
  const NormLinearResult result{
      .sum = branch.defined() ? Tensor::empty(context, dtype, residual.shape()) : residual,
      .out = Tensor::empty(context, dtype, residual.shape()),
      .y = Tensor::empty(context, dtype, {batch.capacity, w.size(0)})};
  const ProductWeight weight = forward_weight(context, layer.weight);
  dispatch(residual, [&]<class T>(auto& ctx) {
    const auto data = [](const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; };
    const auto value_data = [&](const Variable& v) {
      return v.defined() ? data(v.value()) : nullptr;
    };
    auto product = product_of<T>(weight, result.out, result.y);
    product.bias = value_data(layer.bias);
    product.relu = layer.relu;
    product.label = "norm_linear";
    kernels::run(ctx, kernels::NormProduct<T>{.norm = {.kind = norm.kind,
                                                       .rows = rows_of(batch),
                                                       .width = w.size(1),
                                                       .epsilon = norm.epsilon,
                                                       .residual = data(residual),
                                                       .branch = data(branch),
                                                       .gamma = value_data(norm.gamma),
                                                       .beta = value_data(norm.beta),
                                                       .sum = data(result.sum),
                                                       .out = data(result.out),
                                                       .mean = mean.data<Accumulator<T>>(),
                                                       .rstd = rstd.data<Accumulator<T>>()},
                                              .product = product});
  });
  return result;
}

}  // namespace nunchi
