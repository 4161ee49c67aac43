// The options of the encoder-decoder Transformer, with the paper's base model as defaults.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/stack_config.h"

namespace nunchi {

// T5 is the same model with other defaults (models/t5.h).
struct TransformerConfig : StackConfig {
  static constexpr const char* kFamily = "transformer";
  static constexpr std::array<std::string_view, 3> kPresets = {"tiny", "base", "big"};

  std::int64_t source_vocabulary = 37000;
  std::int64_t target_vocabulary = 37000;
  int encoder_layers = 6;
  int decoder_layers = 6;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  bool scale_output = false;  // what the vocabulary sees is divided by √width

  // The shapes that people know by name: tiny, base, big. Throws UsageError for another.
  static TransformerConfig preset(const std::string& name, std::int64_t vocabulary);

  std::string family() const override { return kFamily; }
  std::unique_ptr<Model> make(const Vocabularies& vocabularies) const override;
  void write_training_options(OptionWriter& out) const override;
  ObjectiveKind objective() const override { return ObjectiveKind::translation; }
  std::string one_vocabulary() const override;
  Needs needs() const override { return needs_of({Sees::all, Sees::past}); }

  // config.json's text, both ways. `where` names the file in errors: wrong types, sizes out of
  // range, unknown keys (with the nearest known one).
  std::string to_json() const;
  static TransformerConfig from_json(const std::string& text, const std::string& where);
  // The same from the reader of a whole config.json, and from `model:` of a training config.
  static TransformerConfig from_options(OptionReader& in);
  static TransformerConfig from_training_options(OptionReader& in);

  EmbeddingTables::Options tables() const {
    return {source_vocabulary, target_vocabulary, width,
            tied_embeddings,   scale_embeddings,  scale_output};
  }
  // Throws Error with `where` when sizes do not fit together or are absurd.
  void check(const std::string& where) const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config) {
    constexpr std::int64_t kMost = family_options::kLargestVocabulary;
    in.integer("source_vocabulary", config.source_vocabulary, 1, kMost);
    in.integer("target_vocabulary", config.target_vocabulary, 1, kMost);
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
