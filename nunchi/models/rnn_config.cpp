#include "nunchi/models/rnn_config.h"

#include <array>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

constexpr std::array kCells = {Choice{"gru", CellKind::gru}, Choice{"lstm", CellKind::lstm}};
constexpr std::array kAttentions = {Choice{"none", RnnAttention::none},
                                    Choice{"additive", RnnAttention::additive},
                                    Choice{"dot", RnnAttention::dot}};
constexpr std::array kTied = {Choice{"all", TiedEmbeddings::all},
                              Choice{"target", TiedEmbeddings::target},
                              Choice{"none", TiedEmbeddings::none}};

constexpr std::int64_t kLargestVocabulary = 16 << 20;
constexpr std::int64_t kLargestWidth = 1 << 14;
constexpr std::int64_t kMostLayers = 64;

constexpr const char* kFamily = "rnn";

void take_family(OptionReader& in) {
  std::string family = kFamily;
  in.text("family", family);
  if (family != kFamily) in.fail("family", std::string("is ") + kFamily + " here");
}

void vocabularies(auto& in, auto& config) {
  in.integer("source_vocabulary", config.source_vocabulary, 1, kLargestVocabulary);
  in.integer("target_vocabulary", config.target_vocabulary, 1, kLargestVocabulary);
}

// Everything else.
void shape(auto& in, auto& config) {
  in.choice("cell", config.cell, kCells);
  in.integer("encoder_layers", config.encoder_layers, 1, kMostLayers);
  in.integer("decoder_layers", config.decoder_layers, 1, kMostLayers);
  in.integer("width", config.width, 1, kLargestWidth);
  in.flag("bidirectional", config.bidirectional);
  in.choice("attention", config.attention, kAttentions);
  in.choice("tied_embeddings", config.tied_embeddings, kTied);
  in.fraction("dropout", config.dropout);
  in.number("free_running", config.free_running, 0, 1);
}

bool halves(const RnnConfig& config) { return !config.bidirectional || config.width % 2 == 0; }

std::string odd_width(const RnnConfig& config) {
  return "is " + std::to_string(config.width) +
         ", but an encoder that reads both ways gives each way half of it; use an even width";
}

}  // namespace

RnnConfig RnnConfig::from_options(OptionReader& in) {
  RnnConfig config;
  take_family(in);
  vocabularies(in, config);
  shape(in, config);
  in.finish();
  config.check(in.where());
  return config;
}

RnnConfig RnnConfig::from_training_options(OptionReader& in) {
  RnnConfig config;
  take_family(in);
  for (const char* key : {"source_vocabulary", "target_vocabulary"}) {
    in.refuse(key, "the tokenizers decide it.");
  }
  shape(in, config);
  in.finish();
  if (!halves(config)) in.fail({"width", "bidirectional"}, odd_width(config));
  config.check(in.where());
  return config;
}

RnnConfig RnnConfig::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

std::string RnnConfig::to_json() const {
  OptionWriter out;
  out.text("family", kFamily);
  vocabularies(out, *this);
  shape(out, *this);
  return nunchi::to_json(out.tree());
}

void RnnConfig::write_training_options(OptionWriter& out) const {
  out.text("family", kFamily);
  shape(out, *this);
}

void RnnConfig::check(const std::string& where) const {
  if (width < 1 || encoder_layers < 1 || decoder_layers < 1 || source_vocabulary < 1 ||
      target_vocabulary < 1) {
    throw Error(where + ": every size is at least one.");
  }
  if (!halves(*this)) throw Error(where + ": 'width' " + odd_width(*this) + ".");
  if (tied_embeddings == TiedEmbeddings::all && source_vocabulary != target_vocabulary) {
    throw Error(where + ": tied_embeddings 'all' needs one vocabulary, but there are " +
                std::to_string(source_vocabulary) + " source and " +
                std::to_string(target_vocabulary) + " target tokens. Use 'target' or 'none'.");
  }
}

}  // namespace nunchi
