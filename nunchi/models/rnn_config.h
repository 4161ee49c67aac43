// The options of the recurrent encoder-decoder.
#pragma once

#include <string>

#include "nunchi/base/options.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/ops/recurrent.h"

namespace nunchi {

// How the decoder looks at the encoder's states: not at all, or with which score.
enum class RnnAttention : std::uint8_t { none, additive, dot };

struct RnnConfig {
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

  // config.json's text, both ways. `where` names the file in errors: wrong types, sizes out of
  // range, unknown keys (with the nearest known one).
  std::string to_json() const;
  static RnnConfig from_json(const std::string& text, const std::string& where);
  // The same from the reader of a whole config.json.
  static RnnConfig from_options(OptionReader& in);

  // The model of a training config: the keys of config.json. The vocabularies come from the
  // tokenizers: not read, not written.
  static RnnConfig from_training_options(OptionReader& in);
  void write_training_options(OptionWriter& out) const;

  // Throws Error with `where` when sizes do not fit together or are absurd.
  void check(const std::string& where) const;
};

}  // namespace nunchi
