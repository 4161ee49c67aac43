#include "nunchi/nn/linear.h"

namespace nunchi::nn {

Linear::Linear(Parameters& parameters, const std::string& name, const Options& options)
    : parameters_{.weight = parameters.add(
                      name + ".weight", {options.outputs, options.inputs},
                      Init::xavier(options.inputs, options.outputs / options.stacked)
                          .with_first(options.first_rows * options.inputs, options.first_factor)),
                  .bias = options.bias
                              ? parameters.add(name + ".bias", {options.outputs}, Init::zeros())
                              : Variable()} {}

}  // namespace nunchi::nn
