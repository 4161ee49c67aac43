#include "nunchi/models/transformer_config.h"

#include <array>
#include <string_view>

#include "nunchi/base/error.h"

namespace nunchi {
namespace {

constexpr std::array kPlacements = {Choice{"post", nn::NormPlacement::post},
                                    Choice{"pre", nn::NormPlacement::pre}};
constexpr std::array kNorms = {Choice{"layer", NormKind::layer}, Choice{"rms", NormKind::rms}};
constexpr std::array kActivations = {
    Choice{"relu", ActivationKind::relu}, Choice{"gelu", ActivationKind::gelu},
    Choice{"gelu_tanh", ActivationKind::gelu_tanh}, Choice{"swiglu", ActivationKind::swiglu}};
constexpr std::array kTied = {Choice{"all", TiedEmbeddings::all},
                              Choice{"target", TiedEmbeddings::target},
                              Choice{"none", TiedEmbeddings::none}};
constexpr std::array kPositions = {Choice{"none", nn::PositionKind::none},
                                   Choice{"sinusoidal", nn::PositionKind::sinusoidal},
                                   Choice{"learned", nn::PositionKind::learned}};

constexpr std::int64_t kLargestVocabulary = 16 << 20;
constexpr std::int64_t kLargestWidth = 1 << 16;
constexpr std::int64_t kMostLayers = 1 << 10;
constexpr std::int64_t kMostHeads = 256;  // dropout's draws tell so many apart

// Names as they are looked up in preset().
constexpr std::array kPresets = {Choice{"tiny", std::string_view("tiny")},
                                 Choice{"base", std::string_view("base")},
                                 Choice{"big", std::string_view("big")}};

constexpr const char* kFamily = "transformer";

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
  in.integer("encoder_layers", config.encoder_layers, 0, kMostLayers);
  in.integer("decoder_layers", config.decoder_layers, 1, kMostLayers);
  in.integer("width", config.width, 1, kLargestWidth);
  in.integer("heads", config.heads, 1, kMostHeads);
  in.integer("feed_forward", config.feed_forward, 1, 4 * kLargestWidth);
  in.choice("norm_placement", config.norm_placement, kPlacements);
  in.choice("norm", config.norm, kNorms);
  in.choice("activation", config.activation, kActivations);
  in.choice("tied_embeddings", config.tied_embeddings, kTied);
  in.choice("position", config.position, kPositions);
  in.integer("max_positions", config.max_positions, 1, kLargestVocabulary);
  in.fraction("dropout", config.dropout);
  in.fraction("attention_dropout", config.attention_dropout);
  in.fraction("activation_dropout", config.activation_dropout);
}

}  // namespace

TransformerConfig TransformerConfig::preset(const std::string& name, std::int64_t vocabulary) {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.attention_dropout = config.dropout;
  if (name == "base") return config;
  if (name == "big") {
    config.width = 1024;
    config.heads = 16;
    config.feed_forward = 4096;
    config.dropout = config.attention_dropout = 0.3f;
    return config;
  }
  if (name == "tiny") {
    config.width = 128;
    config.heads = 4;
    config.feed_forward = 256;
    config.encoder_layers = config.decoder_layers = 4;
    config.dropout = config.attention_dropout = 0.2f;
    config.norm_placement = nn::NormPlacement::pre;
    return config;
  }
  throw UsageError("there is no preset '" + name + "'; known are tiny, base and big.");
}

TransformerConfig TransformerConfig::from_options(OptionReader& in) {
  TransformerConfig config;
  take_family(in);
  vocabularies(in, config);
  shape(in, config);
  in.finish();
  config.check(in.where());
  return config;
}

TransformerConfig TransformerConfig::from_training_options(OptionReader& in) {
  TransformerConfig config;
  take_family(in);
  if (std::string_view preset; in.has("preset")) {
    in.choice("preset", preset, kPresets);
    config = TransformerConfig::preset(std::string(preset), config.target_vocabulary);
  }
  for (const char* key : {"source_vocabulary", "target_vocabulary"}) {
    in.refuse(key, "the tokenizers decide it.");
  }
  shape(in, config);
  in.finish();
  if (config.width % config.heads != 0) {
    in.fail({"heads", "width", "preset"}, "is " + std::to_string(config.heads) +
                                              ", but a width of " + std::to_string(config.width) +
                                              " cannot be cut into so many heads of equal width");
  }
  config.check(in.where());
  return config;
}

TransformerConfig TransformerConfig::from_json(const std::string& text, const std::string& where) {
  const Options options = Options::from_json(text, where);
  OptionReader in(options);
  return from_options(in);
}

std::string TransformerConfig::to_json() const {
  OptionWriter out;
  out.text("family", kFamily);
  vocabularies(out, *this);
  shape(out, *this);
  return nunchi::to_json(out.tree());
}

void TransformerConfig::write_training_options(OptionWriter& out) const {
  out.text("family", kFamily);
  shape(out, *this);
}

void TransformerConfig::check(const std::string& where) const {
  if (width < 1 || heads < 1 || heads > kMostHeads || feed_forward < 1 || decoder_layers < 1 ||
      encoder_layers < 0 || source_vocabulary < 1 || target_vocabulary < 1 || max_positions < 1) {
    throw Error(where + ": every size is at least one, and there are at most " +
                std::to_string(kMostHeads) + " heads.");
  }
  if (width % heads != 0) {
    throw Error(where + ": a width of " + std::to_string(width) + " cannot be cut into " +
                std::to_string(heads) + " heads of equal width.");
  }
  if (tied_embeddings == TiedEmbeddings::all && source_vocabulary != target_vocabulary) {
    throw Error(where + ": tied_embeddings 'all' needs one vocabulary, but there are " +
                std::to_string(source_vocabulary) + " source and " +
                std::to_string(target_vocabulary) + " target tokens. Use 'target' or 'none'.");
  }
}

nn::BlockConfig TransformerConfig::block() const {
  return {.width = width,
          .heads = heads,
          .hidden = feed_forward,
          .placement = norm_placement,
          .norm = norm,
          .activation = activation,
          .dropout = dropout,
          .attention_dropout = attention_dropout,
          .activation_dropout = activation_dropout};
}

}  // namespace nunchi
