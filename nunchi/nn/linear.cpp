#include "nunchi/nn/linear.h"

namespace nunchi::nn {

Linear::Linear(Parameters& parameters, const std::string& name, const Options& options)
    : parameters_{
          .weight = parameters.add(name + ".weight", {options.outputs, options.inputs},
                                   Init::xavier(options.inputs, options.outputs / options.stacked)),
          .bias = parameters.add(name + ".bias", {options.outputs}, Init::zeros())} {}

}  // namespace nunchi::nn
