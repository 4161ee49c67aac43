// Layers by number and what comes after the last of them: what every Transformer is made of.
#pragma once

#include <string>
#include <vector>

#include "nunchi/nn/blocks.h"
#include "nunchi/ops/scale.h"
#include "nunchi/trace/trace.h"

namespace nunchi {

struct LayerStackOptions {
  const char* name = "encoder";  // or "decoder"; a literal
  int layers = 0;
  nn::BlockConfig block = {};
  double output_scale = 1;  // what comes out is multiplied by it
};

template <class Layer>
class LayerStack {
 public:
  LayerStack(nn::Parameters& parameters, const LayerStackOptions& options,
             const nn::Position& position)
      : name_(options.name),
        layers_(made(parameters, options, position)),
        end_(parameters, options.name, options.block.residual()),
        output_scale_(options.output_scale) {}

  std::size_t size() const { return layers_.size(); }

  // From embedded rows [T, C] to what the stack makes of them, [T, C]; run(layer, stream, number)
  // is one layer's part.
  Variable operator()(const Variable& embedded, const Ragged& rows, const auto& run) const {
    tap(Tap::embedding, {name_, -1, ""}, embedded.value(), rows);
    const Variable hidden = step(embedded, rows, run);
    tap(Tap::stack_output, {name_, -1, ""}, hidden.value(), rows);
    return hidden;
  }
  // The same for the rows of a decode step, of which a trace is not told.
  Variable step(const Variable& embedded, const Ragged& rows, const auto& run) const {
    nn::Stream stream{embedded, {}, {}, {}};
    for (std::size_t i = 0; i < layers_.size(); ++i) stream = run(layers_[i], stream, i);
    const Variable hidden = end_(stream, rows);
    return output_scale_ == 1 ? hidden : scale(hidden, output_scale_);
  }

 private:
  static std::vector<Layer> made(nn::Parameters& parameters, const LayerStackOptions& options,
                                 const nn::Position& position) {
    std::vector<Layer> layers;
    layers.reserve(static_cast<std::size_t>(options.layers));
    for (int i = 0; i < options.layers; ++i) {
      const std::string name = std::string(options.name) + ".layers." + std::to_string(i);
      layers.emplace_back(parameters, name, options.block, position);
    }
    return layers;
  }

  const char* name_;
  std::vector<Layer> layers_;
  nn::StreamEnd end_;
  double output_scale_;
};

// The same over all layers of an encoder, or of a decoder without memory.
inline Variable through(const LayerStack<nn::EncoderLayer>& stack, const Variable& embedded,
                        const Ragged& rows) {
  return stack(embedded, rows,
               [&](const nn::EncoderLayer& layer, const nn::Stream& stream, std::size_t i) {
                 return layer(stream, rows, static_cast<int>(i));
               });
}

}  // namespace nunchi
