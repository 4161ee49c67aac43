#include "nunchi/ops/linear.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/activation.h"
#include "nunchi/kernels/product.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

// What did not pass through relu gets no gradient. In place, unless someone
// else reads d_y too.
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
  check(x.shape().dimensions() == 2 && w.shape().dimensions() == 2 && x.size(1) == w.size(1) &&
            x.contiguous(),
        "linear",
        "rows " + x.shape().to_string() + " do not fit a weight " + w.shape().to_string());
  if (parameters.bias.defined()) {
    check_shape("linear", "bias", parameters.bias.value(), {w.size(0)});
  }
}

}  // namespace

Variable linear(const Variable& x, const Linear& parameters) {
  const Variable &weight = parameters.weight, &bias = parameters.bias;
  const Tensor& w = weight.value();
  check_layer(x.value(), parameters);
  const Tensor y = Tensor::empty(w.context(), w.dtype(), {x.value().size(0), w.size(0)});
  multiply(x.value(), pack_for_forward(weight), y,
           {.bias = bias.defined() ? bias.value() : Tensor(),
            .relu = parameters.relu,
            .label = "linear"});
  return record("linear", y, {x, weight, bias},
                [x = x.value(), weight, y = parameters.relu ? y : Tensor()](Gradients& d) {
                  const Tensor d_y = y.defined() ? relu_backward(y, d.of_output()) : d.of_output();
                  if (d.wanted(0)) {
                    const GradientTarget d_x = d.into(0);
                    multiply(d_y, pack_for_backward(weight), d_x.tensor,
                             {.accumulate = d_x.accumulate, .label = "linear_backward_input"});
                  }
                  add_linear_gradients(d, 1, d_y, x);
                });
}

Tensor linear_onto(const Tensor& onto, const Tensor& x, const Linear& parameters) {
  const Tensor& w = parameters.weight.value();
  check_layer(x, parameters);
  check_shape("linear_onto", "what is added to", onto, {x.size(0), w.size(0)});
  check(x.context().tape() == nullptr && !parameters.relu && onto.contiguous(), "linear_onto",
        "it is not for what is recorded, nor for relu, nor for columns of a tensor");
  const Tensor y = Tensor::empty(w.context(), w.dtype(), onto.shape());
  multiply(x, pack_for_forward(parameters.weight), y,
           {.bias = parameters.bias.defined() ? parameters.bias.value() : Tensor(),
            .added = onto,
            .label = "linear"});
  return y;
}

bool adds_on_the_way(ContextBase& context) {
  bool adds = false;
  on_device(context,
            [&](auto& ctx) { adds = kernels::kAddsOnTheWay<std::remove_cvref_t<decltype(ctx)>>; });
  return adds;
}

}  // namespace nunchi
