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
  std::int64_t source_features = 0;  // F: the source consists of rows of features, not of tokens
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

  ModelInputs inputs() const {
    return {.source_vocabulary = source_features > 0 ? 0 : source_vocabulary,
            .target_vocabulary = target_vocabulary,
            .source_features = source_features};
  }
  EmbeddingTables::Options tables() const {
    return {inputs().source_vocabulary, target_vocabulary, width, tied_embeddings,
            scale_embeddings,           scale_output};
  }
  std::string unused(std::string_view key) const {
    if (key == "source_vocabulary" && source_features > 0) return "the source has no tokens";
    return StackConfig::unused(key);
  }
  // Calls `fail` when sizes do not fit together or are absurd.
  void check(const FailOption& fail) const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config) {
    in.integer("source_vocabulary", config.source_vocabulary, 1, kLargestVocabulary);
    in.optional_integer("source_features", config.source_features, 1, stack_options::kLargestWidth,
                        std::int64_t{0});
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
