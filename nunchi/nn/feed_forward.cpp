#include "nunchi/nn/feed_forward.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/feed_forward.h"

namespace nunchi::nn {

FeedForward::FeedForward(Parameters& parameters, const std::string& name, const Options& options)
    : activation_(options.activation),
      fused_((options.activation == ActivationKind::relu ||
              options.activation == ActivationKind::gelu_tanh) &&
             options.dropout == 0),
      dropout_{options.dropout, parameters.next_operation_id()},
      up_(parameters, name + ".up",
          {.inputs = options.width,
           .outputs = kernels::input_width(options.activation, options.hidden),
           .stacked = kernels::is_gated(options.activation) ? 2 : 1,
           .bias = options.bias,
           .deviation = options.init.deviation}),
      down_(parameters, name + ".down",
            {.inputs = options.hidden,
             .outputs = options.width,
             .bias = options.bias,
             .deviation = options.init.branch_deviation}) {}

Branch FeedForward::operator()(LazyNorm& x, const LayerInput& in,
                               const TapLocation& location) const {
  const auto run = [&]() -> Branch {
    if (fused_) {
      return feed_forward(x, {up_.parameters(), down_.parameters(), activation_}, in.rows);
    }
    return {activation(up_(x), in.rows, activation_, dropout_), down_.parameters()};
  };
  Branch branch = run();
  if (const Trace* trace = x.context().trace()) {
    if (trace->wants(Tap::feed_forward_hidden)) {
      const TapePause pause(x.context());
      write_to_trace(Tap::feed_forward_hidden, location,
                     activation(up_(x.rows()), in.rows, activation_, dropout_), in);
    }
    write_to_trace(Tap::feed_forward, location, branch, in);
  }
  return branch;
}

}  // namespace nunchi::nn
