#include "nunchi/models/families/rnn_config.h"

#include "nunchi/models/described_config.h"
#include "nunchi/models/families/rnn.h"

namespace nunchi {
namespace {

constexpr std::array kCells = {Choice{"gru", CellKind::gru}, Choice{"lstm", CellKind::lstm}};
constexpr std::array kAttentions = {Choice{"none", RnnAttention::none},
                                    Choice{"additive", RnnAttention::additive},
                                    Choice{"dot", RnnAttention::dot}};
constexpr std::int64_t kMaxWidth = 1 << 14;
constexpr std::int64_t kMaxLayers = 64;

constexpr std::array kPresets = {
    // For small data sets.
    Preset<RnnConfig>{"rnn-small", [](RnnConfig& config) { config.width = 256; }},
    Preset<RnnConfig>{"rnn-base", [](RnnConfig&) {}},
};

constexpr FamilyInfo<RnnConfig> kRnn = {
    .name = "rnn", .defaults = [] { return RnnConfig(); }, .presets = kPresets};

struct RnnFields {
  using Config = RnnConfig;
  using Model = Rnn;

  static const FamilyInfo<Config>& info(const Config&) { return kRnn; }
  static void visit_input_sizes(auto& visitor, auto& config) {
    visitor.integer("source_vocabulary", config.source_vocabulary, 1, kMaxVocabulary);
    visitor.integer("target_vocabulary", config.target_vocabulary, 1, kMaxVocabulary);
  }
  static void visit_dropouts(auto& visitor, auto& config) {
    visitor.fraction("dropout", config.dropout);
  }
  static void visit_options(auto& visitor, auto& config) {
    visitor.choice("cell", config.cell, kCells);
    visitor.integer("encoder_layers", config.encoder_layers, 1, kMaxLayers);
    visitor.integer("decoder_layers", config.decoder_layers, 1, kMaxLayers);
    visitor.integer("width", config.width, 1, kMaxWidth);
    visitor.flag("bidirectional", config.bidirectional);
    visitor.choice("attention", config.attention, kAttentions);
    visitor.choice("tied_embeddings", config.tied_embeddings, kTiedEmbeddings);
    visit_dropouts(visitor, config);
    visitor.number("free_running", config.free_running, 0, 1);
  }
};

}  // namespace

void RnnConfig::check(const FailOption& fail) const {
  check_sizes(fail, {{"width", width},
                     {"encoder_layers", encoder_layers},
                     {"decoder_layers", decoder_layers},
                     {"source_vocabulary", source_vocabulary},
                     {"target_vocabulary", target_vocabulary}});
  if (bidirectional && width % 2 != 0) {
    fail({"width", "bidirectional", "preset"},
         "is " + std::to_string(width) +
             ", but a bidirectional encoder gives each direction half of it; use an even width");
  }
  EmbeddingTables::check(tables(), fail);
}

std::shared_ptr<const FamilyConfig> make_family_config(RnnConfig config) {
  return std::make_shared<DescribedConfig<RnnFields>>(config);
}

Family rnn_family() { return make_family<RnnFields>(kRnn); }

}  // namespace nunchi
