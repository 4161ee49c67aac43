#include "nunchi/ops/linear.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/activation.h"
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

}  // namespace

Variable linear(const Variable& x, const Linear& parameters) {
  const Variable &weight = parameters.weight, &bias = parameters.bias;
  const Tensor& w = weight.value();
  check(x.value().shape().dimensions() == 2 && w.shape().dimensions() == 2 &&
            x.value().size(1) == w.size(1) && x.value().contiguous(),
        "linear",
        "rows " + x.value().shape().to_string() + " do not fit a weight " + w.shape().to_string());
  if (bias.defined()) check_shape("linear", "bias", bias.value(), {w.size(0)});

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

}  // namespace nunchi
