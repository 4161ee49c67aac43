// The Transformer's encoder: from a source to the memory that a decoder attends to.
//
//   source → embedding with positions → layers, each row over all rows of its sentence → memory
#pragma once

#include "nunchi/data/source.h"
#include "nunchi/models/layer_stack.h"
#include "nunchi/models/memory.h"
#include "nunchi/nn/embedding.h"
#include "nunchi/nn/feature_embedding.h"

namespace nunchi {

// What an encoder is built on; all of it outlives the encoder. One of the embeddings is null: an
// encoder reads tokens or features.
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

  // Throws Error when the source is not the kind that the encoder reads.
  Memory operator()(const Source& source) const;

 private:
  Variable embedded(const Source& source) const;

  EncoderInput input_;
  LayerStack<nn::EncoderLayer> layers_;
};

}  // namespace nunchi
