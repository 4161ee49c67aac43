#include "nunchi/nn/residual.h"

#include "nunchi/ops/tensors.h"

namespace nunchi::nn {

Norm make_norm(Parameters& parameters, const std::string& name, NormKind kind, std::int64_t width) {
  return {.kind = kind,
          .gamma = parameters.add(name + ".weight", {width}, Init::ones()),
          .beta = kind == NormKind::layer ? parameters.add(name + ".bias", {width}, Init::zeros())
                                          : Variable()};
}

StreamEnd::StreamEnd(Parameters& parameters, const std::string& name,
                     const Residual::Options& options) {
  if (options.placement == NormPlacement::pre) {
    norm_ = make_norm(parameters, name + ".norm", options.norm, options.width);
  }
}

Variable StreamEnd::operator()(const Stream& stream, const Ragged& batch) const {
  if (!norm_.gamma.defined()) return stream.value;
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
