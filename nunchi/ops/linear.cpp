#include "nunchi/ops/linear.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/product.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// The inputs of linear().
enum Input : int { kX, kWeight, kBias };

// Elements that relu set to zero get no gradient. In place, unless d_y has other owners.
Tensor relu_backward(const Tensor& y, const Tensor& d_y) {
  const Tensor d_x =
      d_y.sole_owner() ? d_y : Tensor::empty(d_y.context(), d_y.dtype(), d_y.shape());
  dispatch(y, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::ActivationBackward<T>{.kind = kernels::ActivationKind::relu,
                                                     .rows = {.capacity = y.size(0)},
                                                     .width = y.size(1),
                                                     .x = y.data<T>(),
                                                     .d_out = d_y.data<T>(),
                                                     .d_x = d_x.data<T>()});
  });
  return d_x;
}

void check_layer(const Tensor& x, const Linear& parameters) {
  const Tensor& w = parameters.weight.value();
  check(x.shape().dimensions() == 2 && w.shape().dimensions() == 2 && x.size(1) == w.size(1),
        "linear",
        "rows " + x.shape().to_string() + " do not fit a weight " + w.shape().to_string());
  check(x.contiguous(), "linear", "x must be contiguous");
  if (parameters.bias.defined()) {
    check_shape("linear", "bias", parameters.bias.value(), {w.size(0)});
  }
}

}  // namespace

Variable linear(const Variable& x, const Linear& parameters) {
  const Variable &weight = parameters.weight, &bias = parameters.bias;
  const Tensor& w = weight.value();
  check_layer(x.value(), parameters);
  ContextBase& context = x.value().context();
  const Tensor y = Tensor::empty(context, w.dtype(), {x.value().size(0), w.size(0)});
  multiply(x.value(), forward_weight(context, weight), y,
           {.bias = bias.defined() ? bias.value() : Tensor(),
            .relu = parameters.relu,
            .label = "linear"});
  return record("linear", y, {x, weight, bias},
                [x = x.value(), weight, y = parameters.relu ? y : Tensor()](Gradients& gradients) {
                  const Tensor d_y =
                      y.defined() ? relu_backward(y, gradients.output()) : gradients.output();
                  if (gradients.wanted(kX)) {
                    const GradientTarget d_x = gradients.target(kX);
                    multiply(d_y, backward_weight(d_y.context(), weight), d_x.tensor,
                             {.accumulate = d_x.accumulate, .label = "linear_backward_input"});
                  }
                  add_linear_gradients(gradients, kWeight, d_y, x);
                });
}

Tensor linear_add(const Tensor& residual, const Tensor& x, const Linear& parameters) {
  const Tensor& w = parameters.weight.value();
  check_layer(x, parameters);
  check_shape("linear_add", "residual", residual, {x.size(0), w.size(0)});
  check(x.context().tape() == nullptr, "linear_add",
        "it is inference-only but was called while a tape records");
  check(!parameters.relu, "linear_add", "relu is not supported");
  check(residual.contiguous(), "linear_add", "residual must be contiguous");
  const Tensor y = Tensor::empty(x.context(), w.dtype(), residual.shape());
  multiply(x, forward_weight(x.context(), parameters.weight), y,
           {.bias = parameters.bias.defined() ? parameters.bias.value() : Tensor(),
            .residual = residual,
            .label = "linear"});
  return y;
}

}  // namespace nunchi
