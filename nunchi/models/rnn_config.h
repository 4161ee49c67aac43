// The options of the recurrent encoder-decoder.
#pragma once

#include <string>
#include <string_view>

#include "nunchi/models/embedding_tables.h"
#include "nunchi/models/family.h"
#include "nunchi/ops/recurrent.h"

namespace nunchi {

// How the decoder looks at the encoder's states: not at all, or with which score.
enum class RnnAttention : std::uint8_t { none, additive, dot };

struct RnnConfig final : FamilyConfig {
  static constexpr const char* kFamily = "rnn";
  static constexpr std::array<std::string_view, 2> kPresets = {"rnn-small", "rnn-base"};

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

  // Shapes by name: rnn-base as above, rnn-small of width 256 for little data. Throws UsageError
  // for another.
  static RnnConfig preset(const std::string& name, std::int64_t vocabulary);

  std::string family() const override { return kFamily; }
  std::unique_ptr<Model> make(const Vocabularies& vocabularies) const override;
  void write_training_options(OptionWriter& out) const override;
  ObjectiveKind objective() const override { return ObjectiveKind::translation; }
  std::int64_t model_width() const override { return width; }
  std::string one_vocabulary() const override;
  void check_options(const OptionReader& in) const;

  // config.json's text, both ways. `where` names the file in errors: wrong types, sizes out of
  // range, unknown keys (with the nearest known one).
  std::string to_json() const;
  static RnnConfig from_json(const std::string& text, const std::string& where);
  // The same from the reader of a whole config.json, and from `model:` of a training config.
  static RnnConfig from_options(OptionReader& in);
  static RnnConfig from_training_options(OptionReader& in);

  EmbeddingTables::Options tables() const {
    return {source_vocabulary, target_vocabulary, width, tied_embeddings};
  }
  // Throws Error with `where` when sizes do not fit together or are absurd.
  void check(const std::string& where) const;

  // See models/family_options.h.
  static void vocabularies(auto& in, auto& config);
  static void shape(auto& in, auto& config);
};

}  // namespace nunchi
