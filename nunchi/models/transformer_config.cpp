#include "nunchi/models/transformer_config.h"

#include <fmt/format.h>

#include "nunchi/models/json_object.h"

namespace nunchi {
namespace {

template <class E>
using NamedValues = std::vector<std::pair<std::string, E>>;

const NamedValues<nn::NormPlacement> kPlacements = {{"post", nn::NormPlacement::post},
                                                    {"pre", nn::NormPlacement::pre}};
const NamedValues<NormKind> kNorms = {{"layer", NormKind::layer}, {"rms", NormKind::rms}};
const NamedValues<ActivationKind> kActivations = {{"relu", ActivationKind::relu},
                                                  {"gelu", ActivationKind::gelu},
                                                  {"gelu_tanh", ActivationKind::gelu_tanh},
                                                  {"swiglu", ActivationKind::swiglu}};
const NamedValues<TiedEmbeddings> kTied = {{"all", TiedEmbeddings::all},
                                           {"target", TiedEmbeddings::target},
                                           {"none", TiedEmbeddings::none}};
const NamedValues<nn::PositionKind> kPositions = {{"none", nn::PositionKind::none},
                                                  {"sinusoidal", nn::PositionKind::sinusoidal},
                                                  {"learned", nn::PositionKind::learned}};

template <class E>
std::string name_in(const NamedValues<E>& names, E value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "";
}

constexpr std::int64_t kLargestVocabulary = 16 << 20;
constexpr std::int64_t kLargestWidth = 1 << 16;
constexpr std::int64_t kMostLayers = 1 << 10;
constexpr std::int64_t kMostHeads = 256;  // dropout's draws tell so many apart

// 0.1f as 0.1, not as 0.10000000149011612: the shortest text that reads back as
// the same float.
double short_decimal(float value) { return std::stod(fmt::format("{}", value)); }

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

std::string TransformerConfig::to_json() const {
  const nlohmann::ordered_json json = {{"family", "transformer"},
                                       {"source_vocabulary", source_vocabulary},
                                       {"target_vocabulary", target_vocabulary},
                                       {"encoder_layers", encoder_layers},
                                       {"decoder_layers", decoder_layers},
                                       {"width", width},
                                       {"heads", heads},
                                       {"feed_forward", feed_forward},
                                       {"norm_placement", name_in(kPlacements, norm_placement)},
                                       {"norm", name_in(kNorms, norm)},
                                       {"activation", name_in(kActivations, activation)},
                                       {"tied_embeddings", name_in(kTied, tied_embeddings)},
                                       {"position", name_in(kPositions, position)},
                                       {"max_positions", max_positions},
                                       {"dropout", short_decimal(dropout)},
                                       {"attention_dropout", short_decimal(attention_dropout)},
                                       {"activation_dropout", short_decimal(activation_dropout)}};
  return json.dump(2) + "\n";
}

TransformerConfig TransformerConfig::from_json(const std::string& text, const std::string& where) {
  TransformerConfig config;
  JsonObject object(parse_json_object(text, where), where);
  object.ignore("family");
  object.integer("source_vocabulary", config.source_vocabulary, 1, kLargestVocabulary);
  object.integer("target_vocabulary", config.target_vocabulary, 1, kLargestVocabulary);
  object.integer("encoder_layers", config.encoder_layers, 0, kMostLayers);
  object.integer("decoder_layers", config.decoder_layers, 1, kMostLayers);
  object.integer("width", config.width, 1, kLargestWidth);
  object.integer("heads", config.heads, 1, kMostHeads);
  object.integer("feed_forward", config.feed_forward, 1, 4 * kLargestWidth);
  object.choice("norm_placement", config.norm_placement, kPlacements);
  object.choice("norm", config.norm, kNorms);
  object.choice("activation", config.activation, kActivations);
  object.choice("tied_embeddings", config.tied_embeddings, kTied);
  object.choice("position", config.position, kPositions);
  object.integer("max_positions", config.max_positions, 1, kLargestVocabulary);
  object.fraction("dropout", config.dropout);
  object.fraction("attention_dropout", config.attention_dropout);
  object.fraction("activation_dropout", config.activation_dropout);
  object.finish();
  config.check(where);
  return config;
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
