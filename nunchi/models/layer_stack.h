// A stack of Transformer layers, followed by the last norm and the output scale.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nunchi/device/work_progress.h"
#include "nunchi/nn/blocks.h"
#include "nunchi/ops/scale.h"
#include "nunchi/trace/trace.h"

namespace nunchi {

struct LayerStackOptions {
  const char* name = "encoder";  // or "decoder"; must be a string literal
  int layers = 0;
  nn::BlockConfig block = {};
  double output_scale = 1;  // factor of the stack's output
};

// The inputs of a stack beside the embedded rows; those of one layer are in nn/layer_input.h.
struct StackInput {
  const Ragged& rows;
  const nn::DecodeStep* step = nullptr;      // null: the rows are whole sentences
  const nn::DecoderCache* cache = nullptr;   // null without a step
  std::span<const Variable> memory_kv = {};  // one per decoder layer, [S, key_value_width]
  const Ragged* memory = nullptr;            // the sentences of memory_kv; null in a step

  nn::LayerInput of_layer(std::size_t i) const {
    return {.layer = static_cast<int>(i),
            .rows = rows,
            .step = step,
            .cache = cache != nullptr ? cache->layer(i) : Tensor(),
            .memory_kv = memory_kv.empty() ? Variable() : memory_kv[i],
            .memory = memory};
  }
};

template <class Layer>
class LayerStack {
 public:
  LayerStack(nn::Parameters& parameters, const LayerStackOptions& options,
             const nn::Position& position)
      : name_(options.name),
        layers_(make_layers(parameters, options, position)),
        end_(parameters, options.name, options.block.residual()),
        output_scale_(options.output_scale) {}

  std::size_t size() const { return layers_.size(); }

  // Embedded rows [T, C] → hidden rows [T, C].
  Variable operator()(const Variable& embedded, const StackInput& in) const {
    write_to_trace(Tap::embedding, {name_, -1, ""}, embedded.value(), in.rows);
    ResidualStream stream{
        .kind = in.step == nullptr ? StreamRows::sentences : StreamRows::decode_step,
        .value = embedded};
    const bool many_tokens = in.step == nullptr || !in.step->one_each;
    WorkProgress* const progress =
        many_tokens ? WorkProgress::for_rows(embedded.value().context(), in.rows.capacity)
                    : nullptr;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (progress != nullptr) progress->set(progress_at(i));
      stream = layers_[i](std::move(stream), in.of_layer(i));
    }
    if (progress != nullptr) progress->clear();
    Variable hidden = end_(std::move(stream), in.rows);
    if (output_scale_ != 1) hidden = scale(hidden, output_scale_);
    write_to_trace(Tap::stack_output, {name_, -1, ""}, hidden.value(), in.rows);
    return hidden;
  }

 private:
  WorkProgress::State progress_at(std::size_t layer) const {
    const bool encodes = std::string_view(name_) == "encoder";
    return {.stage = encodes ? WorkProgress::Stage::encoding : WorkProgress::Stage::reading_prompt,
            .done = static_cast<std::int64_t>(layer),
            .total = static_cast<std::int64_t>(layers_.size())};
  }
  static std::vector<Layer> make_layers(nn::Parameters& parameters,
                                        const LayerStackOptions& options,
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

}  // namespace nunchi
