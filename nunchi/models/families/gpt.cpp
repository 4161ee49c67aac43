#include "nunchi/models/families/gpt.h"

#include <cmath>

#include "nunchi/models/decoding_state.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/ops/linear.h"

namespace nunchi {
namespace {

// GPT-2's: normal with 0.02, and less where a branch joins the stream, to which 2 L of them add up.
nn::Init init_of(const nn::ParameterEntry& entry, int layers) {
  constexpr double kDeviation = 0.02;
  if (entry.shape.dimensions() < 2) return entry.init;
  const bool joins = entry.name.ends_with(".output.weight") || entry.name.ends_with(".down.weight");
  const bool in_layer = entry.name.find(".layers.") != std::string::npos;
  return nn::Init::normal(joins && in_layer ? kDeviation / std::sqrt(2.0 * layers) : kDeviation);
}

}  // namespace

// With V tokens, N positions, width C, feed-forward F and L layers it has
//   V·C + N·C + L·(4·C² + 4·C + 2·C·F + F + C + 4·C) + 2·C
// parameters: GPT-2 with V = 50,257 has 124,439,808.
Gpt::Gpt(const GptConfig& config)
    : config_(config.checked()),
      table_(parameters_.add("decoder.embedding.weight", {config.target_vocabulary, config.width},
                             nn::Init::zeros())),
      output_table_(config.tied_embeddings
                        ? table_
                        : parameters_.add("decoder.output.weight",
                                          {config.target_vocabulary, config.width},
                                          nn::Init::zeros())),
      position_(nn::make_position(parameters_, "decoder.position",
                                  config.position_options(nn::Sees::past))),
      embedding_(parameters_, table_, config.embedding_options()),
      layers_(parameters_, {.name = "decoder", .layers = config.layers, .block = config.block()},
              *position_) {
  parameters_.set_inits(
      [&](const nn::ParameterEntry& entry) { return init_of(entry, config.layers); });
}

Variable Gpt::hidden(const TokenBatch& text) const {
  check_vocabulary(text, config_.target_vocabulary, "text");
  return through(layers_, embedding_(text.ids, text.rows, *position_), text.rows);
}

Variable Gpt::logits(const Variable& hidden, const Ragged& rows) const {
  const Variable scores = linear(hidden, {.weight = output_table_});
  tap(Tap::logits, {"decoder", -1, ""}, scores.value(), rows);
  return scores;
}

VocabularyLoss Gpt::loss(const TextBatch& batch, const VocabularyLossOptions& options) const {
  return vocabulary_loss(hidden(batch.inputs), output_table_, batch.labels, batch.inputs.rows,
                         options);
}

std::unique_ptr<SequenceModel::State> Gpt::start(ContextBase& context) const {
  return std::make_unique<DecodingState>(
      context, nn::DecoderCache::Options{.layers = config_.layers,
                                         .width = config_.block().key_value_width(),
                                         .dtype = parameters_.dtype()});
}

void Gpt::restart(State& state) const { static_cast<DecodingState&>(state).cache.restart({}); }

Tensor Gpt::step(State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<DecodingState&>(any_state);
  const auto [step, embedded] = state.cache.extend(tokens, embedding_, *position_);
  const Variable hidden =
      layers_.step(embedded, step.rows,
                   [&](const nn::EncoderLayer& layer, const nn::Stream& stream, std::size_t i) {
                     return layer.step(stream, step, state.cache.layer(i));
                   });
  return newest_rows(hidden.value(), tokens, step);
}

bool Gpt::reserve(State& state, const ReplayedSteps& steps) const {
  return static_cast<DecodingState&>(state).reserve(*position_, steps);
}

Tensor Gpt::next_scores(const Tensor& hidden) const {
  return vocabulary_scores(hidden, output_table_);
}

}  // namespace nunchi
