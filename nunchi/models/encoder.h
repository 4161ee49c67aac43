// The Transformer's encoder: from a source to the memory that a decoder attends to.
//
//   source → embedding with positions → layers → memory
//
// In each layer, a row attends to all rows of its sentence.
#pragma once

#include "nunchi/data/source.h"
#include "nunchi/models/layer_stack.h"
#include "nunchi/models/memory.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/nn/feature_embedding.h"

namespace nunchi {

// The modules that an encoder uses; they must outlive it. Exactly one of `tokens` and `features` is
// null: an encoder reads tokens or features.
struct EncoderInput {
  const nn::Embedding* tokens = nullptr;
  const nn::FeatureEmbedding* features = nullptr;
  const nn::Position& position;
  ModelInputs inputs;
};

class Encoder {
 public:
  Encoder(nn::Parameters& parameters, const EncoderInput& input, const LayerStackOptions& options)
      : input_(input), layers_(parameters, options, input.position) {}

  // Throws Error for tokens if the encoder reads features, and vice versa.
  Memory operator()(const Source& source) const;

 private:
  Variable embedded(const Source& source) const;

  EncoderInput input_;
  LayerStack<nn::EncoderLayer> layers_;
};

}  // namespace nunchi
