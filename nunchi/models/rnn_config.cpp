#include "nunchi/models/rnn_config.h"

#include "nunchi/models/family_definitions.h"
#include "nunchi/models/rnn.h"

namespace nunchi {
namespace {

constexpr std::array kCells = {Choice{"gru", CellKind::gru}, Choice{"lstm", CellKind::lstm}};
constexpr std::array kAttentions = {Choice{"none", RnnAttention::none},
                                    Choice{"additive", RnnAttention::additive},
                                    Choice{"dot", RnnAttention::dot}};
constexpr std::int64_t kLargestWidth = 1 << 14;
constexpr std::int64_t kMostLayers = 64;

bool halves(const RnnConfig& config) { return !config.bidirectional || config.width % 2 == 0; }

std::string odd_width(const RnnConfig& config) {
  return "is " + std::to_string(config.width) +
         ", but an encoder that reads both ways gives each way half of it; use an even width";
}

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

void RnnConfig::check_options(const OptionReader& in) const {
  if (!halves(*this)) in.fail({"width", "bidirectional", "preset"}, odd_width(*this));
}

void RnnConfig::keep_function() { dropout = free_running = 0; }

void RnnConfig::check(const std::string& where) const {
  if (width < 1 || encoder_layers < 1 || decoder_layers < 1 || source_vocabulary < 1 ||
      target_vocabulary < 1) {
    throw Error(where + ": every size is at least one.");
  }
  if (!halves(*this)) throw Error(where + ": 'width' " + odd_width(*this) + ".");
  EmbeddingTables::check(tables(), where);
}

template struct FamilyOptions<RnnConfig, FamilyConfig>;

}  // namespace nunchi
