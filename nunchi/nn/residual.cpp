#include "nunchi/nn/residual.h"

namespace nunchi::nn {

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
      norm_(make_norm(parameters, name + ".norm", options.norm, options.width, options.epsilon)),
      dropout_{options.dropout, parameters.next_operation_id()} {}

LazyNorm Residual::input(ResidualStream stream, const Ragged& batch) const {
  return {std::move(stream), placement_ == NormPlacement::pre ? &norm_ : nullptr, batch};
}

ResidualStream Residual::output(LazyNorm& x, Branch branch) const {
  const bool post = placement_ == NormPlacement::post;
  ResidualStream stream = branch.added_to(post ? x.rows() : x.sum(), x.kind(), dropout_);
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
    norm_ = make_norm(parameters, name + ".norm", options.norm, options.width, options.epsilon);
  }
}

Variable StreamEnd::operator()(ResidualStream stream, const Ragged& batch) const {
  return LazyNorm(std::move(stream), norm_ ? &*norm_ : nullptr, batch).rows();
}

}  // namespace nunchi::nn
