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

// The modules that an encoder uses; they must outlive it. Exactly one of the embeddings is null: an
// encoder reads tokens or features.
struct EncoderModules {
  const nn::Embedding* token_embedding = nullptr;
  const nn::FeatureEmbedding* feature_embedding = nullptr;
  const nn::Position& position;
  InputSizes input_sizes;
};

class Encoder {
 public:
  Encoder(nn::Parameters& parameters, const EncoderModules& modules,
          const LayerStackOptions& options)
      : modules_(modules), layers_(parameters, options, modules.position) {}

  // Throws Error for tokens if the encoder reads features, and vice versa.
  Memory operator()(const Source& source) const;

 private:
  Variable embedded(const Source& source) const;

  EncoderModules modules_;
  LayerStack<nn::EncoderLayer> layers_;
};

}  // namespace nunchi
