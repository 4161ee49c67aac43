#include "nunchi/nn/linear.h"

namespace nunchi::nn {
namespace {

Init init_of(const Linear::Options& options) {
  if (options.deviation > 0) return Init::normal(options.deviation);
  return Init::xavier(options.inputs, options.outputs / options.stacked)
      .with_first_scaled(options.first_rows * options.inputs, options.first_factor);
}

}  // namespace

Linear::Linear(Parameters& parameters, const std::string& name, const Options& options)
    : parameters_{.weight = parameters.add(name + ".weight", {options.outputs, options.inputs},
                                           init_of(options), ParameterUse::product),
                  .bias = options.bias
                              ? parameters.add(name + ".bias", {options.outputs}, Init::zeros())
                              : Variable()} {}

}  // namespace nunchi::nn
