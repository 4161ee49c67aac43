#include "nunchi/models/families/rnn_config.h"

#include "nunchi/models/families/rnn.h"
#include "nunchi/models/family_definitions.h"

namespace nunchi {
namespace {

constexpr std::array kCells = {Choice{"gru", CellKind::gru}, Choice{"lstm", CellKind::lstm}};
constexpr std::array kAttentions = {Choice{"none", RnnAttention::none},
                                    Choice{"additive", RnnAttention::additive},
                                    Choice{"dot", RnnAttention::dot}};
constexpr std::int64_t kLargestWidth = 1 << 14;
constexpr std::int64_t kMostLayers = 64;

}  // namespace

void RnnConfig::vocabularies(auto& in, auto& config) {
  in.integer("source_vocabulary", config.source_vocabulary, 1, kLargestVocabulary);
  in.integer("target_vocabulary", config.target_vocabulary, 1, kLargestVocabulary);
}

void RnnConfig::shape(auto& in, auto& config) {
  in.choice("cell", config.cell, kCells);
  in.integer("encoder_layers", config.encoder_layers, 1, kMostLayers);
  in.integer("decoder_layers", config.decoder_layers, 1, kMostLayers);
  in.integer("width", config.width, 1, kLargestWidth);
  in.flag("bidirectional", config.bidirectional);
  in.choice("attention", config.attention, kAttentions);
  in.choice("tied_embeddings", config.tied_embeddings, kTiedEmbeddings);
  in.fraction("dropout", config.dropout);
  in.number("free_running", config.free_running, 0, 1);
}

std::span<const Preset<RnnConfig>> RnnConfig::presets() {
  static constexpr std::array kPresets = {
      Preset<RnnConfig>{"rnn-small", [](RnnConfig& config) { config.width = 256; }},
      Preset<RnnConfig>{"rnn-base", [](RnnConfig&) {}},
  };
  return kPresets;
}

std::string RnnConfig::one_vocabulary() const {
  return EmbeddingTables::one_vocabulary(tied_embeddings);
}

void RnnConfig::keep_function() { dropout = free_running = 0; }

void RnnConfig::check(const FailOption& fail) const {
  if (width < 1 || encoder_layers < 1 || decoder_layers < 1 || source_vocabulary < 1 ||
      target_vocabulary < 1) {
    fail({"width", "encoder_layers", "decoder_layers", "source_vocabulary", "target_vocabulary"},
         "is at least one, as every size");
  }
  if (bidirectional && width % 2 != 0) {
    fail({"width", "bidirectional", "preset"},
         "is " + std::to_string(width) +
             ", but an encoder that reads both ways gives each way half of it; use an even width");
  }
  EmbeddingTables::check(tables(), fail);
}

template struct FamilyOptions<RnnConfig, FamilyConfig>;

}  // namespace nunchi
