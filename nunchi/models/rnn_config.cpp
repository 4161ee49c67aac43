#include "nunchi/models/rnn_config.h"

#include "nunchi/models/family_options.h"
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
  constexpr std::int64_t kMost = family_options::kLargestVocabulary;
  in.integer("source_vocabulary", config.source_vocabulary, 1, kMost);
  in.integer("target_vocabulary", config.target_vocabulary, 1, kMost);
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

RnnConfig RnnConfig::preset(const std::string& name, std::int64_t vocabulary) {
  RnnConfig config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  if (name == "rnn-base") return config;
  if (name == "rnn-small") {
    config.width = 256;
    return config;
  }
  throw UsageError("there is no preset '" + name + "'; known are rnn-small and rnn-base.");
}

std::unique_ptr<Model> RnnConfig::make(const Vocabularies& vocabularies) const {
  RnnConfig config = *this;
  config.source_vocabulary = vocabularies.source;
  config.target_vocabulary = vocabularies.target;
  return std::make_unique<Rnn>(config);
}

std::string RnnConfig::one_vocabulary() const {
  return EmbeddingTables::one_vocabulary(tied_embeddings);
}

void RnnConfig::check_options(const OptionReader& in) const {
  if (!halves(*this)) in.fail({"width", "bidirectional", "preset"}, odd_width(*this));
}

RnnConfig RnnConfig::from_options(OptionReader& in) { return family_options::read<RnnConfig>(in); }

RnnConfig RnnConfig::from_training_options(OptionReader& in) {
  return family_options::read_training<RnnConfig>(in);
}

RnnConfig RnnConfig::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

std::string RnnConfig::to_json() const { return family_options::to_json(*this); }

void RnnConfig::write_training_options(OptionWriter& out) const {
  family_options::write_training(*this, out);
}

void RnnConfig::check(const std::string& where) const {
  if (width < 1 || encoder_layers < 1 || decoder_layers < 1 || source_vocabulary < 1 ||
      target_vocabulary < 1) {
    throw Error(where + ": every size is at least one.");
  }
  if (!halves(*this)) throw Error(where + ": 'width' " + odd_width(*this) + ".");
  EmbeddingTables::check(tables(), where);
}

}  // namespace nunchi
