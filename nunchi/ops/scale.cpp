#include "nunchi/ops/scale.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/ops/check.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

Tensor scaled(const Tensor& x, double factor) {
  const Tensor out = Tensor::empty(x.context(), x.dtype(), x.shape());
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(
        ctx, kernels::Scale<T>{
                 .count = x.elements(), .factor = factor, .x = x.data<T>(), .out = out.data<T>()});
  });
  return out;
}

}  // namespace

Variable scale(const Variable& x, double factor) {
  check(x.value().contiguous(), "scale", "a view of columns cannot be scaled");
  return record("scale", scaled(x.value(), factor), {x}, [factor](Gradients& gradients) {
    gradients.add(0, scaled(gradients.output(), factor));
  });
}

}  // namespace nunchi
