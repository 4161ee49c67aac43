// The options of the recurrent encoder-decoder.
#pragma once

#include <string>
#include <vector>

#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/typed_config.h"
#include "nunchi/ops/recurrent.h"

namespace nunchi {

// Whether the decoder attends to the encoder's states, and with which score.
enum class RnnAttention : std::uint8_t { none, additive, dot };

struct RnnConfig {
  std::int64_t source_vocabulary = 32000;
  std::int64_t target_vocabulary = 32000;
  CellKind cell = CellKind::gru;
  int encoder_layers = 2;
  int decoder_layers = 2;
  std::int64_t width = 512;   // width of embeddings and states
  bool bidirectional = true;  // the encoder reads in both directions, each with half of the width
  RnnAttention attention = RnnAttention::dot;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  float dropout = 0.2f;  // after embeddings, between layers and before the vocabulary projection
  // Training: the probability that the decoder reads its own prediction at a target position in
  // place of the true token. 0: teacher forcing.
  float free_running = 0;

  EmbeddingTables::Options tables() const {
    return {source_vocabulary, target_vocabulary, width, tied_embeddings};
  }

  // See models/described_config.h.
  std::vector<ObjectiveKind> objectives() const {
    return {ObjectiveKind::translation, ObjectiveKind::span_corruption};
  }
  std::int64_t max_length() const { return kUnlimitedLength; }
  std::string shared_vocabulary_reason() const {
    return EmbeddingTables::shared_vocabulary_reason(tied_embeddings);
  }
  FamilyConfig::KernelRequirements kernel_requirements() const { return {}; }
  void check(const FailOption& fail) const;
  std::string why_unused(std::string_view) const { return {}; }
  void take_defaults(const OptionReader&) {}
  void reset_training_and_task_options() { dropout = free_running = 0; }
};

std::shared_ptr<const FamilyConfig> make_family_config(RnnConfig config);
Family rnn_family();  // the registry's entry

}  // namespace nunchi
