// What Transformers that generate have in common: layers by number, the cache of a generation under
// way.
#pragma once

#include <string>
#include <vector>

#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/blocks.h"
#include "nunchi/nn/decoder_cache.h"

namespace nunchi {

template <class Layer>
std::vector<Layer> make_layers(nn::Parameters& parameters, const std::string& stack, int count,
                               const nn::BlockConfig& config, const nn::Position& position) {
  std::vector<Layer> layers;
  layers.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    layers.emplace_back(parameters, stack + ".layers." + std::to_string(i), config, position);
  }
  return layers;
}

struct DecodingState : SequenceModel::State {
  // Throws Error while the context records.
  DecodingState(ContextBase& context, const nn::DecoderCache::Options& options);

  // See SequenceModel::reserve.
  bool reserve(const nn::Position& position, const SequenceModel::ReplayedSteps& steps);

  nn::DecoderCache cache;
  Tensor positions;  // what a replayed step reads stays where it is
};

// The rows of the hypotheses' newest tokens, of all rows of a step: [decode_capacity(H), C].
Tensor newest_rows(const Tensor& hidden, const nn::StepTokens& tokens, const nn::DecodeStep& step);

}  // namespace nunchi
