#include "nunchi/ops/residual_norm.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/tensor/dispatch.h"

namespace nunchi {
namespace {

struct Saved {
  Ragged batch;
  Norm norm;
  kernels::Dropout dropout;
  bool has_branch;
  Tensor sum, mean, rstd;
};

void run_backward(const Saved& saved, const Tensor& d_sum, Tensor d_out, Gradients& gradients) {
  const Tensor& sum = saved.sum;
  const std::int64_t width = sum.size(1);
  ContextBase& context = sum.context();
  // d_out is undefined if only the sum was used.
  if (!d_out.defined()) d_out = zeros(context, sum.dtype(), sum.shape());
  const bool branch_wanted = saved.has_branch && gradients.wanted(1);
  // Without dropout, branch and residual have the same gradient and share one tensor.
  const bool shares_gradient = branch_wanted && !saved.dropout.active();
  GradientTarget d_residual;
  if (shares_gradient) {
    d_residual = {Tensor::empty(context, sum.dtype(), sum.shape()), false};
  } else if (gradients.wanted(0)) {
    d_residual = gradients.target(0);
  }
  const Tensor d_branch = branch_wanted && !shares_gradient
                              ? Tensor::empty(context, sum.dtype(), sum.shape())
                              : Tensor();
  // The kernel always computes the gradient of gamma.
  const Tensor d_gamma = gradients.wanted(2)
                             ? gradients.sum(2)
                             : zeros(context, accumulator_type(sum.dtype()), {width});
  dispatch(sum, [&]<class T>(auto& ctx) {
    using Kernel = kernels::ResidualNormBackward<T>;
    const auto data = [](const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; };
    const Tensor d_beta = gradients.wanted(3) ? gradients.sum(3) : Tensor();
    kernels::run(ctx, Kernel{.kind = saved.norm.kind,
                             .rows = rows_of(saved.batch),
                             .width = width,
                             .dropout = saved.dropout,
                             .sum = sum.data<T>(),
                             .gamma = saved.norm.gamma.value().template data<T>(),
                             .mean = saved.mean.data<Accumulator<T>>(),
                             .rstd = saved.rstd.data<Accumulator<T>>(),
                             .d_out = d_out.data<T>(),
                             .d_sum = data(d_sum),
                             .d_residual = data(d_residual.tensor),
                             .accumulate_residual = d_residual.accumulate,
                             .d_branch = data(d_branch),
                             .d_gamma = d_gamma.data<Accumulator<T>>(),
                             .d_beta = d_beta.defined() ? d_beta.data<Accumulator<T>>() : nullptr});
  });
  if (shares_gradient) {
    if (gradients.wanted(0)) gradients.add(0, d_residual.tensor);
    gradients.add(1, d_residual.tensor);
  } else if (branch_wanted) {
    gradients.add(1, d_branch);
  }
}

}  // namespace

ResidualNormResult residual_norm(const Variable& residual, const Variable& branch,
                                 const Ragged& batch, const Norm& norm, const Dropout& dropout) {
  const Tensor& x = residual.value();
  check(x.shape().dimensions() == 2 && x.size(0) == batch.capacity && x.contiguous(),
        "residual_norm", "residual has shape " + x.shape().to_string());
  if (branch.defined()) check_shape("residual_norm", "branch", branch.value(), x.shape());
  check_shape("residual_norm", "gamma", norm.gamma.value(), {x.size(1)});

  ContextBase& context = x.context();
  Saved saved{.batch = batch,
              .norm = norm,
              .dropout = dropout_on(context, dropout),
              .has_branch = branch.defined(),
              .sum = branch.defined() ? Tensor::empty(context, x.dtype(), x.shape()) : x,
              .mean = Tensor::empty(context, accumulator_type(x.dtype()), {x.size(0)}),
              .rstd = Tensor::empty(context, accumulator_type(x.dtype()), {x.size(0)})};
  const Tensor out = Tensor::empty(context, x.dtype(), x.shape());
  dispatch(x, [&]<class T>(auto& ctx) {
    kernels::run(ctx,
                 kernels::ResidualNorm<T>{
                     .kind = norm.kind,
                     .rows = rows_of(batch),
                     .width = x.size(1),
                     .epsilon = norm.epsilon,
                     .dropout = saved.dropout,
                     .residual = x.data<T>(),
                     .branch = branch.defined() ? branch.value().data<T>() : nullptr,
                     .gamma = norm.gamma.value().template data<T>(),
                     .beta = norm.beta.defined() ? norm.beta.value().template data<T>() : nullptr,
                     .sum = saved.sum.data<T>(),
                     .out = out.data<T>(),
                     .mean = saved.mean.data<Accumulator<T>>(),
                     .rstd = saved.rstd.data<Accumulator<T>>()});
  });
  const Tensor sum = saved.sum;
  if (!branch.defined()) {
    return {residual, record("norm", out, {residual, branch, norm.gamma, norm.beta},
                             [saved = std::move(saved)](Gradients& gradients) {
                               run_backward(saved, Tensor(), gradients.output(), gradients);
                             })};
  }
  std::vector<Variable> results = record(
      "residual_norm", std::vector<Tensor>{sum, out}, {residual, branch, norm.gamma, norm.beta},
      [saved = std::move(saved)](Gradients& gradients) {
        run_backward(saved, gradients.output(0), gradients.output(1), gradients);
      });
  return {results[0], results[1]};
}

}  // namespace nunchi
