#include "nunchi/nn/residual.h"

#include "nunchi/ops/activation.h"

namespace nunchi::nn {
namespace {

std::optional<Norm> optional_norm(Parameters& parameters, const std::string& name,
                                  const Residual::Options& options) {
  if (!options.normalize) return std::nullopt;
  return make_norm(parameters, name, options.norm, options.width, options.epsilon);
}

}  // namespace

Norm make_norm(Parameters& parameters, const std::string& name, NormKind kind, std::int64_t width,
               double epsilon) {
  return {.kind = kind,
          .epsilon = epsilon,
          .gamma = parameters.add(name + ".weight", {width}, Init::ones()),
          .beta = kind == NormKind::layer ? parameters.add(name + ".bias", {width}, Init::zeros())
                                          : Variable()};
}

Residual::Residual(Parameters& parameters, const std::string& name, const Options& options)
    : placement_(options.placement),
      add_input_(options.add_input),
      norm_(optional_norm(parameters, name + ".norm", options)),
      dropout_{options.dropout, parameters.next_operation_id()} {}

LazyNorm Residual::input(ResidualStream stream, const Ragged& batch) const {
  const bool pre = placement_ == NormPlacement::pre && norm_;
  return {std::move(stream), pre ? &*norm_ : nullptr, batch};
}

ResidualStream Residual::output(LazyNorm& x, Branch branch, const Ragged& batch) const {
  const bool post = placement_ == NormPlacement::post;
  ResidualStream stream =
      add_input_
          ? branch.added_to(post ? x.rows() : x.sum(), x.kind(), dropout_)
          : ResidualStream{.kind = x.kind(), .value = with_dropout(branch.rows(), batch, dropout_)};
  if (post) stream.norm = norm_;
  return stream;
}

void Residual::trace(LazyNorm& x, const ResidualStream& result, const LayerInput& in,
                     const TapLocation& location) const {
  const auto [sum, rows] = peek(result, in.rows);
  const bool post = placement_ == NormPlacement::post;
  nunchi::write_to_trace(Tap::residual_sum, location, sum, in.rows);
  nunchi::write_to_trace(Tap::norm_output, location, post ? rows : x.rows().value(), in.rows);
}

StreamEnd::StreamEnd(Parameters& parameters, const std::string& name,
                     const Residual::Options& options) {
  if (options.placement == NormPlacement::pre) {
    norm_ = optional_norm(parameters, name + ".norm", options);
  }
}

Variable StreamEnd::operator()(ResidualStream stream, const Ragged& batch) const {
  return LazyNorm(std::move(stream), norm_ ? &*norm_ : nullptr, batch).rows();
}

}  // namespace nunchi::nn
