#include "nunchi/nn/residual.h"

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {

Norm make_norm(Parameters& parameters, const std::string& name, NormKind kind, std::int64_t width,
               double epsilon) {
  return {.kind = kind,
          .epsilon = epsilon,
          .gamma = parameters.add(name + ".weight", {width}, Init::ones()),
          .beta = kind == NormKind::layer ? parameters.add(name + ".bias", {width}, Init::zeros())
                                          : Variable()};
}

void PendingNorm::settle() {
  if (out_.defined()) return;
  if (!norm_.gamma.defined()) {
    sum_ = out_ = stream_.value;
    return;
  }
  const auto [sum, out] = residual_norm(stream_.value, stream_.branch, rows_, norm_);
  sum_ = sum;
  out_ = out;
}

Variable PendingNorm::through(const nunchi::Linear& layer) {
  if (out_.defined() || !norm_.gamma.defined()) {
    settle();
    return linear(out_, layer);
  }
  const Tensor branch = stream_.branch.defined() ? stream_.branch.value() : Tensor();
  const NormLinearResult found = norm_linear(stream_.value.value(), branch, rows_, norm_, layer);
  sum_ = Variable(found.sum);
  out_ = Variable(found.out);
  return Variable(found.y);
}

Stream PendingNorm::join(const Linear& layer, const Variable& last) {
  const Variable& value = placement_ == NormPlacement::post ? out() : sum();
  if (!adds_on_the_way(value.value().context())) return {value, layer(last), {}, {}};
  return {Variable(linear_onto(value.value(), last.value(), layer.parameters())), {}, {}, {}};
}

const Variable& PendingNorm::out() {
  settle();
  return out_;
}

const Variable& PendingNorm::sum() {
  settle();
  return sum_;
}

StreamEnd::StreamEnd(Parameters& parameters, const std::string& name,
                     const Residual::Options& options) {
  if (options.placement == NormPlacement::pre) {
    norm_ = make_norm(parameters, name + ".norm", options.norm, options.width, options.epsilon);
  }
}

Variable StreamEnd::operator()(const Stream& stream, const Ragged& batch) const {
  if (!norm_.gamma.defined()) return PendingNorm(stream, stream.norm, batch).out();
  return residual_norm(stream.value, stream.branch, batch, norm_, stream.dropout).out;
}

Variable settled(const Stream& stream, const Ragged& batch) {
  if (!stream.branch.defined()) return stream.value;
  const Tensor& value = stream.value.value();
  const Tensor ones = Tensor::empty(value.context(), value.dtype(), {value.size(1)});
  fill(ones, 1);
  const Norm any{.kind = NormKind::rms, .gamma = Variable(ones)};
  return residual_norm(Variable(value), Variable(stream.branch.value()), batch, any, stream.dropout)
      .sum;
}

}  // namespace nunchi::nn
