// Small models of every family with every kind of position that it supports. The tests of all
// models run over this list: every_model_test.cpp, golden_test.cpp, tests/training/resume_test.cpp
// and cuda/every_model_test.cpp.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "nunchi/decoding/searcher.h"
#include "nunchi/models/families/t5.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

inline constexpr std::array<std::string_view, 5> kFamilies = {"transformer", "t5", "gpt", "bert",
                                                              "rnn"};

// The kinds of positions of every family but the recurrent one, which has none.
struct NamedPosition {
  std::string_view name;
  nn::PositionKind kind;
  nn::RelativeKind relative = nn::RelativeKind::t5;
};
inline constexpr std::array<NamedPosition, 7> kPositions = {{
    {"none", nn::PositionKind::none},
    {"sinusoidal", nn::PositionKind::sinusoidal},
    {"learned", nn::PositionKind::learned},
    {"rotary", nn::PositionKind::rotary},
    {"relative", nn::PositionKind::relative},
    {"clipped", nn::PositionKind::relative, nn::RelativeKind::clipped},
    {"alibi", nn::PositionKind::alibi},
}};

// The size of the models of a test.
struct ModelSize {
  std::int64_t vocabulary = 37;
  std::int64_t width = 40;
  int heads = 2;
  std::int64_t head_width = 12;  // for models whose head width is not width / heads
  std::int64_t feed_forward = 72;
  int buckets = 8;  // for relative positions
  int max_distance = 20;
  float dropout = 0;
};
// Small enough that sentences of a few tokens reach all buckets and the maximum distance.
inline constexpr ModelSize kTiny = {.vocabulary = 7,
                                    .width = 8,
                                    .head_width = 2,
                                    .feed_forward = 5,
                                    .buckets = 4,
                                    .max_distance = 3};

struct NamedModel {
  std::string name;
  ModelConfig config;
};

// For each kind of position two models: one with the family's defaults, and one with grouped heads
// of another width, the other norm placement and the other choice of biases.
template <class Config>
std::vector<NamedModel> with_all_positions(Config config, const ModelSize& size) {
  config.width = size.width;
  config.heads = size.heads;
  config.head_width = 0;
  config.feed_forward = size.feed_forward;
  config.max_positions = 160;
  config.relative_buckets = size.buckets;
  config.dropout = config.attention_dropout = config.activation_dropout = size.dropout;
  std::vector<NamedModel> all;
  for (const NamedPosition& position : kPositions) {
    config.position = position.kind;
    config.relative_kind = position.relative;
    const bool clipped = position.relative == nn::RelativeKind::clipped;
    config.relative_max_distance = clipped ? size.max_distance / 3 + 1 : size.max_distance;
    Config grouped = config;
    grouped.kv_heads = size.heads / 2;
    grouped.head_width = size.head_width;
    grouped.bias = !config.bias;
    grouped.norm_placement = config.norm_placement == nn::NormPlacement::pre
                                 ? nn::NormPlacement::post
                                 : nn::NormPlacement::pre;
    const std::string name = ModelConfig(config)->family() + ", " + std::string(position.name);
    all.push_back({name, config});
    all.push_back({name + ", grouped heads", grouped});
  }
  return all;
}

inline std::vector<NamedModel> models_of(std::string_view family, const ModelSize& size = {}) {
  const auto encoder_decoder = [&](auto config) {
    config.source_vocabulary = config.target_vocabulary = size.vocabulary;
    config.encoder_layers = config.decoder_layers = 2;
    return config;
  };
  const auto single_stack = [&](auto config) {
    config.target_vocabulary = size.vocabulary;
    config.layers = 2;
    return config;
  };
  if (family == "transformer")
    return with_all_positions(encoder_decoder(TransformerConfig()), size);
  if (family == "t5") return with_all_positions(encoder_decoder(t5_config()), size);
  if (family == "gpt") return with_all_positions(single_stack(GptConfig()), size);
  if (family == "bert") return with_all_positions(single_stack(BertConfig()), size);
  std::vector<NamedModel> all;
  for (RnnConfig config : all_small_rnns(size.vocabulary)) {
    config.width = size.width;
    config.dropout = size.dropout;
    all.push_back({ModelConfig(config)->to_json(), config});
  }
  return all;
}

// The input of a model. Families without a source read the targets.
struct Sentences {
  std::vector<Tokens> sources, targets;

  std::size_t size() const { return targets.size(); }
};

// Sentences of these lengths; a sentence's tokens depend only on its index.
inline Sentences pairs_of(const std::vector<std::int32_t>& source_lengths,
                          const std::vector<std::int32_t>& target_lengths,
                          std::int64_t vocabulary) {
  return {sentences_of(source_lengths, vocabulary, 1), sentences_of(target_lengths, vocabulary, 2)};
}

inline Sentences subset_of(const Sentences& all, const std::vector<std::size_t>& chosen) {
  Sentences subset;
  for (const std::size_t b : chosen) {
    subset.sources.push_back(all.sources[b]);
    subset.targets.push_back(all.targets[b]);
  }
  return subset;
}

// A model of any family behind one interface.
class AnyModel {
 public:
  AnyModel(ContextBase& context, std::unique_ptr<Model> model,
           const nn::Parameters::Memory& memory = {})
      : context_(context), model_(std::move(model)) {
    model_->parameters().allocate(context, memory);
    model_->parameters().initialize(11);
    if (model_->family() == "gpt") sharpen(model_->parameters());
  }
  // A model that has its weights.
  struct Loaded {};
  AnyModel(ContextBase& context, std::unique_ptr<Model> model, Loaded)
      : context_(context), model_(std::move(model)) {}
  AnyModel(ContextBase& context, const NamedModel& named, const ModelSize& size = {},
           const nn::Parameters::Memory& memory = {})
      : AnyModel(context, named.config->make({size.vocabulary, size.vocabulary}), memory) {}

  const Model& model() const { return *model_; }
  nn::Parameters& parameters() const { return model_->parameters(); }
  // Whether the model generates token by token, and its interface for that.
  bool generates() const { return dynamic_cast<const SequenceModel*>(model_.get()) != nullptr; }
  const SequenceModel& generator() const { return dynamic_cast<const SequenceModel&>(*model_); }
  // Null if the model does not have that interface.
  const TranslationModel* encoder_decoder() const {
    return dynamic_cast<const TranslationModel*>(model_.get());
  }
  const LanguageModel* language_model() const {
    return dynamic_cast<const LanguageModel*>(model_.get());
  }
  bool has_source() const { return encoder_decoder() != nullptr; }
  // The number of score rows of a target: an encoder-decoder also reads <s>.
  std::size_t rows_of(const Tokens& target) const { return target.size() + (has_source() ? 1 : 0); }

  // The scores of every row, one sentence after another, [rows, V], without dropout.
  Tensor scores(const Sentences& sentences) const {
    if (const auto* found = dynamic_cast<const Transformer*>(model_.get())) {
      return paired_scores(*found, sentences);
    }
    if (const auto* found = dynamic_cast<const Rnn*>(model_.get())) {
      return paired_scores(*found, sentences);
    }
    if (const auto* found = dynamic_cast<const Gpt*>(model_.get())) {
      const TokenBatch text = texts(sentences, found->target_vocabulary());
      return real_rows(found->logits(found->hidden(text), text.rows), text.rows);
    }
    const auto& bert = dynamic_cast<const Bert&>(*model_);
    const TokenBatch text = texts(sentences, bert.vocabulary());
    return bert.scores(bert.hidden(text), text.rows).rows(0, text.rows.rows);
  }

  VocabularyLoss loss(const Sentences& sentences, const VocabularyLossOptions& options) const {
    if (const TranslationModel* found = encoder_decoder()) {
      return found->loss(pairs(*found, sentences), options);
    }
    if (const LanguageModel* found = language_model()) {
      return found->loss(make_text_batch(context_, sentences.targets, found->target_vocabulary()),
                         options);
    }
    const auto& bert = dynamic_cast<const Bert&>(*model_);
    return loss_of(bert,
                   make_masked_batch(context_, masked_texts(sentences.targets), bert.vocabulary()),
                   options);
  }

  // The source of a search; none for a language model.
  std::optional<Source> source(const std::vector<Tokens>& sources) const {
    const TranslationModel* found = encoder_decoder();
    if (found == nullptr) return std::nullopt;
    return make_token_batch(context_, sources, found->input_sizes().source_vocabulary);
  }
  // A decoding state with one unit per source (a language model ignores their tokens) and at most
  // `hypotheses` hypotheses per unit. Unit i reads prompts[i] tokens in its first step.
  std::unique_ptr<SequenceModel::State> started_state(const std::vector<Tokens>& sources,
                                                      const std::vector<std::int64_t>& prompts,
                                                      std::int64_t hypotheses) const {
    constexpr std::int64_t kMaxPositions = 120, kMemoryRows = 64;
    auto state = generator().make_state(context_, {.units = std::ssize(sources),
                                                   .beam = hypotheses,
                                                   .positions = kMaxPositions,
                                                   .memory_rows = kMemoryRows,
                                                   .source_length = kMemoryRows});
    std::vector<std::int64_t> begins;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto unit = static_cast<std::int64_t>(i);
      const std::int64_t rows = has_source() ? std::ssize(sources[i]) : 0;
      begins.push_back(state->cache.take_memory(rows).value());
      EXPECT_TRUE(state->cache.admit(unit, {.prompt = prompts[i],
                                            .max_length = kMaxPositions,
                                            .memory_begin = begins.back(),
                                            .memory_length = rows}));
      state->cache.provide_slots(unit, kMaxPositions);
    }
    state->cache.publish();
    if (const TranslationModel* found = encoder_decoder()) {
      found->add_sources(*state, *source(sources), begins);
    }
    return state;
  }
  Searcher searcher(const SearchOptions& options) const {
    if (const TranslationModel* found = encoder_decoder()) return {*found, options};
    return {*language_model(), context_, options};
  }

 private:
  static Tensor real_rows(const Variable& scores, const Ragged& rows) {
    return scores.value().rows(0, rows.rows);
  }
  TokenBatch texts(const Sentences& sentences, std::int64_t vocabulary) const {
    return make_token_batch(context_, sentences.targets, vocabulary);
  }
  PairBatch pairs(const TranslationModel& model, const Sentences& sentences) const {
    return make_pair_batch(
        make_token_batch(context_, sentences.sources, model.input_sizes().source_vocabulary),
        sentences.targets, model.target_vocabulary(), {.tokens = kTokens});
  }
  Tensor paired_scores(const auto& model, const Sentences& sentences) const {
    const PairBatch batch = pairs(model, sentences);
    const auto hidden = model.decode(batch.target, model.encode(batch.source));
    return real_rows(model.logits(hidden, batch.target.rows), batch.target.rows);
  }

  ContextBase& context_;
  std::unique_ptr<Model> model_;
};

// A test that runs over all models_of() one family.
class EveryModel : public ::testing::TestWithParam<std::string_view> {};

#define FOR_EVERY_FAMILY(Suite)                                       \
  INSTANTIATE_TEST_SUITE_P(Of, Suite, ::testing::ValuesIn(kFamilies), \
                           [](const auto& info) { return std::string(info.param); })

}  // namespace nunchi::testing
