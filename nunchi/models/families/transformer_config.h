// The options of the encoder-decoder Transformer, with the paper's base model as defaults.
#pragma once

#include <string>
#include <vector>

#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/stack_config.h"

namespace nunchi {

// Families that are this model with different defaults; those of T5 are in models/families/t5.h.
enum class TransformerVariant : std::uint8_t { transformer, t5 };

struct TransformerConfig : StackConfig {
  TransformerVariant variant = TransformerVariant::transformer;  // which family this is
  std::int64_t source_vocabulary = 37000;
  std::int64_t source_feature_width = 0;  // "source_features" in config.json; 0: tokens
  std::int64_t target_vocabulary = 37000;
  int encoder_layers = 6;
  int decoder_layers = 6;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  bool scale_output = false;  // the vocabulary projection's input is divided by √width

  InputSizes input_sizes() const {
    return {.source_vocabulary = source_feature_width > 0 ? 0 : source_vocabulary,
            .target_vocabulary = target_vocabulary,
            .source_feature_width = source_feature_width};
  }
  EmbeddingTables::Options tables() const {
    return {input_sizes().source_vocabulary,
            target_vocabulary,
            width,
            tied_embeddings,
            scale_embeddings,
            scale_output};
  }

  // See models/described_config.h.
  std::vector<ObjectiveKind> objectives() const {
    return {ObjectiveKind::translation, ObjectiveKind::span_corruption};
  }
  std::string shared_vocabulary_reason() const {
    return source_feature_width > 0 ? std::string()
                                    : EmbeddingTables::shared_vocabulary_reason(tied_embeddings);
  }
  FamilyConfig::KernelRequirements kernel_requirements() const {
    return stack_requirements({AttentionMask::none, AttentionMask::causal});
  }
  void check(const FailOption& fail) const;
  std::string why_unused(std::string_view key) const {
    if (key == "source_vocabulary" && source_feature_width > 0) return "the source has no tokens";
    return why_unused_in_stack(key);
  }
  void take_defaults(const OptionReader&) {}
  void reset_training_and_task_options() { reset_stack_training_options(); }
};

std::shared_ptr<const FamilyConfig> make_family_config(TransformerConfig config);
// The registry's entries.
Family transformer_family();
Family t5_family();

}  // namespace nunchi
