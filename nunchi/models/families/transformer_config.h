// The options of the encoder-decoder Transformer, with the paper's base model as defaults.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/stack_config.h"

namespace nunchi {

class Transformer;

// T5 is the same model with other defaults (models/families/t5.h).
struct TransformerConfig : FamilyOptions<TransformerConfig, StackConfig> {
  static constexpr const char* kFamily = "transformer";
  using Made = Transformer;

  std::int64_t source_vocabulary = 37000;
  std::int64_t target_vocabulary = 37000;
  int encoder_layers = 6;
  int decoder_layers = 6;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  bool scale_output = false;  // what the vocabulary sees is divided by √width

  static std::span<const Preset<TransformerConfig>> presets();

  std::vector<ObjectiveKind> objectives() const override {
    return {ObjectiveKind::translation, ObjectiveKind::span_corruption};
  }
  std::string one_vocabulary() const override;
  Needs needs() const override { return needs_of({Sees::all, Sees::past}); }

  EmbeddingTables::Options tables() const {
    return {source_vocabulary, target_vocabulary, width,
            tied_embeddings,   scale_embeddings,  scale_output};
  }
  // Calls `fail` when sizes do not fit together or are absurd.
  void check(const FailOption& fail) const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config) {
    in.integer("source_vocabulary", config.source_vocabulary, 1, kLargestVocabulary);
    in.integer("target_vocabulary", config.target_vocabulary, 1, kLargestVocabulary);
  }
  static void shape(auto& in, auto& config) {
    in.integer("encoder_layers", config.encoder_layers, 0, stack_options::kMostLayers);
    in.integer("decoder_layers", config.decoder_layers, 1, stack_options::kMostLayers);
    stack_options::layers(in, config);
    in.choice("tied_embeddings", config.tied_embeddings, kTiedEmbeddings);
    in.flag("scale_output", config.scale_output);
    stack_options::positions_and_dropouts(in, config);
  }
};

}  // namespace nunchi
