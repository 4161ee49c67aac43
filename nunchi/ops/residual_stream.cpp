#include "nunchi/ops/residual_stream.h"

#include <utility>

#include "nunchi/autograd/tape.h"
#include "nunchi/kernels/product.h"
#include "nunchi/ops/decode/norm_linear.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

bool fuses_residual_add(ContextBase& context) {
  return on_device(context, [](auto& ctx) {
    return kernels::kFusesResidualAdd<std::remove_cvref_t<decltype(ctx)>>;
  });
}

bool is_active(const ContextBase& context, const Dropout& dropout) {
  return dropout_on(context, dropout).active();
}

// residual + dropout(branch) without a norm. Only the sum of residual_norm is used, so any norm
// will do.
Variable sum_of(const Variable& residual, const PendingBranch& branch, const Ragged& batch) {
  const Tensor& value = residual.value();
  const Tensor ones = Tensor::empty(value.context(), value.dtype(), {value.size(1)});
  fill(ones, 1);
  const Norm unused{.kind = NormKind::rms, .gamma = Variable(ones)};
  return residual_norm(residual, branch.rows, batch, unused, branch.dropout).sum;
}

}  // namespace

LazyNorm::LazyNorm(ResidualStream stream, const Norm* norm, const Ragged& batch)
    : context_(stream.value.value().context()), stream_(std::move(stream)), batch_(batch) {
  if (stream_.norm) {
    norm_ = stream_.norm;
  } else if (norm != nullptr) {
    norm_ = *norm;
  }
}

bool LazyNorm::fuses_product() const {
  return stream_.kind == StreamRows::decode_step && norm_ && !rows_.defined() &&
         context_.tape() == nullptr &&
         !(stream_.branch && is_active(context_, stream_.branch->dropout));
}

void LazyNorm::compute() {
  if (rows_.defined()) return;
  if (norm_) {
    const PendingBranch branch = stream_.branch.value_or(PendingBranch{});
    const auto [sum, out] =
        residual_norm(stream_.value, branch.rows, batch_, *norm_, branch.dropout);
    set(sum, out);
  } else if (stream_.branch) {
    const Variable sum = sum_of(stream_.value, *stream_.branch, batch_);
    set(sum, sum);
  } else {
    set(stream_.value, stream_.value);
  }
}

void LazyNorm::set(Variable sum, Variable rows) {
  sum_ = std::move(sum);
  rows_ = std::move(rows);
  stream_.value = {};
  stream_.branch.reset();
}

const Variable& LazyNorm::rows() {
  compute();
  return rows_;
}

const Variable& LazyNorm::sum() {
  compute();
  return sum_;
}

Variable linear(LazyNorm& x, const Linear& layer) {
  if (!x.fuses_product()) return linear(x.rows(), layer);
  const ResidualStream& stream = x.stream_;
  const Tensor branch = stream.branch ? stream.branch->rows.value() : Tensor();
  const NormLinearResult result =
      norm_linear(stream.value.value(), branch, x.batch_, *x.norm_, layer);
  x.set(Variable(result.sum), Variable(result.out));
  return Variable(result.y);
}

const Variable& Branch::rows() {
  if (!rows_.defined()) {
    rows_ = linear(input_, last_);
    input_ = {};
  }
  return rows_;
}

Tensor Branch::peek() const {
  if (rows_.defined()) return rows_.value();
  const TapePause pause(context());
  return linear(input_, last_).value();
}

ResidualStream Branch::added_to(const Variable& residual, StreamRows kind, const Dropout& dropout) {
  const bool fuses = kind == StreamRows::decode_step && !rows_.defined() &&
                     context().tape() == nullptr && !is_active(context(), dropout) &&
                     fuses_residual_add(context());
  if (fuses) {
    return {.kind = kind, .value = Variable(linear_add(residual.value(), input_.value(), last_))};
  }
  return {.kind = kind, .value = residual, .branch = PendingBranch{rows(), dropout}};
}

PeekedStream peek(const ResidualStream& stream, const Ragged& batch) {
  const Tensor& value = stream.value.value();
  if (!stream.norm && !stream.branch) return {value, value};
  const TapePause pause(value.context());
  if (!stream.norm) {
    const Tensor sum = sum_of(stream.value, *stream.branch, batch).value();
    return {sum, sum};
  }
  const PendingBranch branch = stream.branch.value_or(PendingBranch{});
  const ResidualNormResult result =
      residual_norm(stream.value, branch.rows, batch, *stream.norm, branch.dropout);
  return {result.sum.value(), result.out.value()};
}

}  // namespace nunchi
