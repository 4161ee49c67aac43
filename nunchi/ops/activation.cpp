#include "nunchi/ops/activation.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {

Variable activation(const Variable& x, const Ragged& batch, ActivationKind kind,
                    const Dropout& dropout) {
  const Tensor& value = x.value();
  check(value.contiguous() && value.size(0) == batch.capacity, "activation",
        "rows " + value.shape().to_string() + " do not fit the batch");
  const std::int64_t width = kernels::is_gated(kind) ? value.size(1) / 2 : value.size(1);
  const kernels::Dropout kernel_dropout = dropout_on(value.context(), dropout);
  const Tensor out = Tensor::empty(value.context(), value.dtype(), {value.size(0), width});
  dispatch(value, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Activation<T>{.kind = kind,
                                             .rows = rows_of(batch),
                                             .width = width,
                                             .dropout = kernel_dropout,
                                             .x = value.data<T>(),
                                             .out = out.data<T>()});
  });
  return record(
      "activation", out, {x}, [value, batch, kind, width, kernel_dropout](Gradients& gradients) {
        const Tensor d_x = Tensor::empty(value.context(), value.dtype(), value.shape());
        dispatch(value, [&]<class T>(auto& ctx) {
          kernels::run(ctx, kernels::ActivationBackward<T>{.kind = kind,
                                                           .rows = rows_of(batch),
                                                           .width = width,
                                                           .dropout = kernel_dropout,
                                                           .x = value.data<T>(),
                                                           .d_out = gradients.output().data<T>(),
                                                           .d_x = d_x.data<T>()});
        });
        gradients.add(0, d_x);
      });
}

Variable with_dropout(const Variable& x, const Ragged& batch, const Dropout& dropout) {
  if (!dropout_on(x.value().context(), dropout).active()) return x;
  return activation(x, batch, ActivationKind::none, dropout);
}

}  // namespace nunchi
