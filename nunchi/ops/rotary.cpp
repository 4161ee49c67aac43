#include "nunchi/ops/rotary.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/memory.h"
#include "nunchi/kernels/rotary.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

enum class Direction : std::uint8_t { forward, inverse };

void rotate(const Tensor& x, const Ragged& batch, const Rotary& rotation, Direction direction) {
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx, kernels::Rotary<T>{.rows = rows_of(batch),
                                         .heads = rotation.heads,
                                         .head_width = rotation.table.size(1),
                                         .inverse = direction == Direction::inverse,
                                         .table = rotation.table.data<Accumulator<T>>(),
                                         .x = x.data<T>(),
                                         .out = x.data<T>(),
                                         .x_stride = x.row_stride(),
                                         .out_stride = x.row_stride()});
  });
}

Tensor copy_of(const Tensor& x) {
  const Tensor copy = Tensor::empty(x.context(), x.dtype(), x.shape());
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx,
                 kernels::CopyBytes{.bytes = x.bytes(), .from = x.data<T>(), .to = copy.data<T>()});
  });
  return copy;
}

}  // namespace

Variable rotary(const Variable& x, const Ragged& batch, const Rotary& rotation) {
  const Tensor& value = x.value();
  const std::int64_t width = rotation.table.size(1);
  check(width % 2 == 0, "rotary",
        "a head of " + std::to_string(width) + " columns cannot be split into pairs");
  check(value.contiguous() && value.size(0) == batch.capacity &&
            value.size(1) >= rotation.heads * width,
        "rotary",
        "rows " + value.shape().to_string() + " do not hold " + std::to_string(rotation.heads) +
            " heads of " + std::to_string(width));
  check(rotation.table.size(0) >= batch.max_length, "rotary",
        "a table of shape " + rotation.table.shape().to_string() +
            " is too short for sentences of " + std::to_string(batch.max_length) + " tokens");
  rotate(value, batch, rotation, Direction::forward);
  return record("rotary", value, {x}, [batch, rotation](Gradients& gradients) {
    // In place, unless the gradient has other owners.
    const Tensor d_x =
        gradients.output().sole_owner() ? gradients.output() : copy_of(gradients.output());
    rotate(d_x, batch, rotation, Direction::inverse);
    gradients.add(0, d_x);
  });
}

}  // namespace nunchi
