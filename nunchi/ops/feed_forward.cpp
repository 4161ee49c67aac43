#include "nunchi/ops/feed_forward.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/activation.h"
#include "nunchi/ops/check.h"
#include "nunchi/ops/products.h"

namespace nunchi {
namespace {

// The operation's inputs.
enum Input : int { kX, kUpWeight, kUpBias, kDownWeight, kDownBias };

struct Saved {
  ActivationKind activation;
  Tensor x, hidden;   // [R, C], [R, F]
  Tensor gelu_input;  // [R, F]; undefined for relu
  Tensor mask;        // relu's mask; undefined if the backward pass reads `hidden` instead
  Variable up, down;
};

void run_backward(const Saved& saved, Gradients& gradients) {
  const Tensor& d_y = gradients.output();
  add_linear_gradients(gradients, kDownWeight, d_y, saved.hidden);
  if (!gradients.wanted(kX) && !gradients.wanted(kUpWeight) && !gradients.wanted(kUpBias)) return;
  const Tensor d_hidden = Tensor::empty(d_y.context(), saved.hidden.dtype(), saved.hidden.shape());
  multiply_gated(d_y, backward_weight(d_y.context(), saved.down),
                 {.kind = saved.activation,
                  .y = saved.gelu_input.defined() ? saved.gelu_input : saved.hidden,
                  .mask = saved.mask,
                  .d_bias = gradients.wanted(kUpBias) ? gradients.sum(kUpBias) : Tensor()},
                 d_hidden, "linear_backward_input");
  if (gradients.wanted(kX)) {
    const GradientTarget d_x = gradients.target(kX);
    multiply(d_hidden, backward_weight(d_y.context(), saved.up), d_x.tensor,
             {.accumulate = d_x.accumulate, .label = "linear_backward_input"});
  }
  if (gradients.wanted(kUpWeight)) {
    add_weight_gradient(d_hidden, saved.x, gradients.sum(kUpWeight), {}, "linear_backward_weight");
  }
}

void check_layer(const char* layer, const Linear& parameters, std::int64_t inputs) {
  const Tensor& w = parameters.weight.value();
  check(w.shape().dimensions() == 2 && w.size(1) == inputs, "feed_forward",
        std::string(layer) + "'s weight " + w.shape().to_string() + " does not fit rows of " +
            std::to_string(inputs));
  if (parameters.bias.defined()) {
    check_shape("feed_forward", "bias", parameters.bias.value(), {w.size(0)});
  }
}

}  // namespace

Variable feed_forward(const Variable& x, const FeedForward& parameters) {
  const auto& [up, down, activation] = parameters;
  const Tensor& rows = x.value();
  check(rows.shape().dimensions() == 2 && rows.contiguous(), "feed_forward",
        "rows have shape " + rows.shape().to_string());
  check_layer("up", up, rows.size(1));
  check_layer("down", down, up.weight.value().size(0));
  const bool gelu = activation == ActivationKind::gelu_tanh;
  check(gelu || activation == ActivationKind::relu, "feed_forward",
        "the activation must be relu or gelu_tanh");
  const auto bias_of = [](const Linear& layer) {
    return layer.bias.defined() ? layer.bias.value() : Tensor();
  };

  ContextBase& context = rows.context();
  const std::int64_t hidden = up.weight.value().size(0), out = down.weight.value().size(0);
  const bool recorded = recording({x, up.weight, up.bias, down.weight, down.bias});
  Saved saved{.activation = activation,
              .x = rows,
              .hidden = Tensor::empty(context, rows.dtype(), {rows.size(0), hidden}),
              .up = up.weight,
              .down = down.weight};
  if (gelu) {
    // Only the backward pass reads gelu's input again.
    saved.gelu_input =
        recorded ? Tensor::empty(context, rows.dtype(), saved.hidden.shape()) : saved.hidden;
    multiply_gelu(rows, forward_weight(context, up.weight), bias_of(up), saved.gelu_input,
                  saved.hidden);
  } else {
    multiply(rows, forward_weight(context, up.weight), saved.hidden,
             {.bias = bias_of(up),
              .relu = true,
              .mask = recorded ? &saved.mask : nullptr,
              .label = "linear"});
  }
  const Tensor y = Tensor::empty(context, rows.dtype(), {rows.size(0), out});
  multiply(saved.hidden, forward_weight(context, down.weight), y,
           {.bias = bias_of(down), .label = "linear"});
  return record(
      "feed_forward", y, {x, up.weight, up.bias, down.weight, down.bias},
      [saved = std::move(saved)](Gradients& gradients) { run_backward(saved, gradients); });
}

Branch feed_forward(LazyNorm& x, const FeedForward& parameters, const Ragged& batch) {
  if (!x.fuses_product()) return Branch(feed_forward(x.rows(), parameters));
  Linear up = parameters.up;
  up.relu = parameters.activation == ActivationKind::relu;
  const Variable hidden = linear(x, up);
  return {up.relu ? hidden : activation(hidden, batch, parameters.activation), parameters.down};
}

}  // namespace nunchi
