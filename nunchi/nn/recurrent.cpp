#include "nunchi/nn/recurrent.h"

#include <cmath>

#include "nunchi/ops/activation.h"
#include "nunchi/trace/trace.h"

namespace nunchi::nn {
namespace {

// Weights are initialised as in PyTorch, biases with zero.
nunchi::Linear make_linear(Parameters& parameters, const std::string& name, const Shape& shape,
                           std::int64_t width) {
  const Init init{Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(width))};
  return {.weight = parameters.add(name + ".weight", shape, init, ParameterUse::product),
          .bias = parameters.add(name + ".bias", {shape[0]}, Init::zeros())};
}

RecurrentLayer make_layer(Parameters& parameters, const std::string& name,
                          const RecurrentConfig& config) {
  const int directions = config.bidirectional ? 2 : 1;
  const std::int64_t direction_width = config.width / directions,
                     gate_rows = kernels::gates_of(config.cell) * direction_width;
  const auto hidden = [&](const char* suffix) {
    return make_linear(parameters, name + suffix, {gate_rows, direction_width}, direction_width);
  };
  RecurrentLayer layer{
      .cell = config.cell,
      .input = make_linear(parameters, name + ".input", {directions * gate_rows, config.width},
                           direction_width),
      .hidden = {}};
  layer.hidden[0] = hidden(".hidden");
  if (config.bidirectional) layer.hidden[1] = hidden(".hidden_reverse");
  return layer;
}

}  // namespace

RecurrentStack::RecurrentStack(Parameters& parameters, const std::string& name,
                               const RecurrentConfig& config)
    : name_(name) {
  for (int i = 0; i < config.layers; ++i) {
    layers_.push_back(make_layer(parameters, name + ".layers." + std::to_string(i), config));
    if (i > 0) dropouts_.push_back({config.dropout, parameters.next_operation_id()});
  }
}

RecurrentStack::Result RecurrentStack::operator()(
    const Variable& x, const Ragged& batch, const std::vector<RecurrentState>& initial) const {
  Result result{x, {}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) result.out = with_dropout(result.out, batch, dropouts_[i - 1]);
    RecurrentResult layer =
        recurrent(result.out, layers_[i], batch, initial.empty() ? RecurrentState{} : initial[i]);
    write_to_trace(Tap::layer_output, {name_, static_cast<int>(i), ""}, layer.out.value(), batch);
    result.out = std::move(layer.out);
    result.last.push_back(std::move(layer.last));
  }
  return result;
}

Variable RecurrentStack::step(const Variable& x, const Ragged& rows,
                              const std::vector<StateRows>& before,
                              const std::vector<StateRows>& after) const {
  Variable out = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    recurrent_step(out.value(), layers_[i], rows, before[i], after[i]);
    out = Variable(after[i].h);
    write_to_trace(Tap::layer_output, {name_, static_cast<int>(i), ""}, out.value(), rows);
  }
  return out;
}

}  // namespace nunchi::nn
