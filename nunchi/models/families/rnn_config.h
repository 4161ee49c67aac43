// The options of the recurrent encoder-decoder.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/family_options.h"
#include "nunchi/ops/recurrent.h"

namespace nunchi {

// How the decoder looks at the encoder's states: not at all, or with which score.
enum class RnnAttention : std::uint8_t { none, additive, dot };

class Rnn;

struct RnnConfig final : FamilyOptions<RnnConfig, FamilyConfig> {
  static constexpr const char* kFamily = "rnn";
  using Made = Rnn;

  std::int64_t source_vocabulary = 32000;
  std::int64_t target_vocabulary = 32000;
  CellKind cell = CellKind::gru;
  int encoder_layers = 2;
  int decoder_layers = 2;
  std::int64_t width = 512;   // of embeddings and states
  bool bidirectional = true;  // the encoder reads both ways, each with half of the width
  RnnAttention attention = RnnAttention::dot;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::all;
  float dropout = 0.2f;  // of embeddings, between layers and of what goes to the vocabulary
  // Training: the share of target positions at which the decoder reads the word that it would have
  // said itself in place of the true one. 0: teacher forcing.
  float free_running = 0;

  // rnn-base as above, rnn-small of width 256 for little data.
  static std::span<const Preset<RnnConfig>> presets();

  std::vector<ObjectiveKind> objectives() const override {
    return {ObjectiveKind::translation, ObjectiveKind::span_corruption};
  }
  std::int64_t model_width() const override { return width; }
  std::string one_vocabulary() const override;

  EmbeddingTables::Options tables() const {
    return {source_vocabulary, target_vocabulary, width, tied_embeddings};
  }
  // Calls `fail` when sizes do not fit together or are absurd.
  void check(const FailOption& fail) const;
  void keep_function();

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config);
  static void shape(auto& in, auto& config);
};

}  // namespace nunchi
