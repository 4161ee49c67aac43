#include "nunchi/nn/feed_forward.h"

#include "nunchi/ops/feed_forward.h"

namespace nunchi::nn {

FeedForward::FeedForward(Parameters& parameters, const std::string& name, const Options& options)
    : activation_(options.activation),
      fused_((options.activation == ActivationKind::relu ||
              options.activation == ActivationKind::gelu_tanh) &&
             options.dropout == 0),
      dropout_{options.dropout, parameters.next_place()},
      up_(parameters, name + ".up",
          {.inputs = options.width,
           .outputs = kernels::input_width(options.activation, options.hidden),
           .stacked = kernels::is_gated(options.activation) ? 2 : 1,
           .bias = options.bias}),
      down_(parameters, name + ".down",
            {.inputs = options.hidden, .outputs = options.width, .bias = options.bias}) {}

Variable FeedForward::operator()(const Variable& x, const Ragged& batch) const {
  if (fused_) return feed_forward(x, {up_.parameters(), down_.parameters(), activation_});
  return down_(activation(up_(x), batch, activation_, dropout_));
}

Stream FeedForward::step(PendingNorm& x, const Ragged& rows) const {
  nunchi::Linear up = up_.parameters();
  up.relu = fused_ && activation_ == ActivationKind::relu;
  const Variable hidden = x.through(up);
  return x.join(down_, up.relu ? hidden : activation(hidden, rows, activation_, dropout_));
}

}  // namespace nunchi::nn
