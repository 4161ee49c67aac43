#include "nunchi/models/families/gpt.h"

#include <cmath>

#include "nunchi/models/decoding_state.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/ops/linear.h"

namespace nunchi {
namespace {

// GPT-2 draws all matrices from normal distributions with this standard deviation.
constexpr double kDeviation = 0.02;

// Matrices whose output is added to the residual stream start smaller, because 2·L branches add up.
nn::BlockConfig block_of(const GptConfig& config) {
  nn::BlockConfig block = config.block(nn::AttentionMask::causal);
  block.init = {.deviation = kDeviation,
                .branch_deviation = kDeviation / std::sqrt(2.0 * config.layers)};
  return block;
}

nn::PositionOptions position_of(const GptConfig& config) {
  nn::PositionOptions options = config.position_options(nn::AttentionMask::causal);
  options.deviation = kDeviation;
  return options;
}

}  // namespace

// With V tokens, N positions, width C, feed-forward F and L layers it has
//   V·C + N·C + L·(4·C² + 4·C + 2·C·F + F + C + 4·C) + 2·C
// parameters: GPT-2 with V = 50,257 has 124,439,808.
Gpt::Gpt(const GptConfig& config)
    : Model(config),
      config_(checked(config)),
      table_(parameters_.add("decoder.embedding.weight", {config.target_vocabulary, config.width},
                             nn::Init::normal(kDeviation), nn::ParameterUse::product)),
      output_table_(config.tied_embeddings
                        ? table_
                        : parameters_.add("decoder.output.weight",
                                          {config.target_vocabulary, config.width},
                                          nn::Init::normal(kDeviation), nn::ParameterUse::product)),
      position_(nn::make_position(parameters_, "decoder.position", position_of(config))),
      embedding_(parameters_, table_, config.embedding_options()),
      layers_(parameters_, {.name = "decoder", .layers = config.layers, .block = block_of(config)},
              *position_) {}

Variable Gpt::hidden(const TokenBatch& text) const {
  check_vocabulary(text, config_.target_vocabulary, "text");
  return layers_(embedding_(text.ids, text.rows, *position_, "decoder"), {.rows = text.rows});
}

Variable Gpt::logits(const Variable& hidden, const Ragged& rows) const {
  const Variable scores = linear(hidden, {.weight = output_table_});
  write_to_trace(Tap::logits, {"decoder", -1, ""}, scores.value(), rows);
  return scores;
}

VocabularyLoss Gpt::loss(const TextBatch& batch, const VocabularyLossOptions& options) const {
  return vocabulary_loss(hidden(batch.inputs), output_table_, batch.labels, batch.inputs.rows,
                         options);
}

std::unique_ptr<SequenceModel::State> Gpt::make_state(ContextBase& context,
                                                      const nn::CacheLimits& limits) const {
  return std::make_unique<TransformerState>(
      context,
      nn::DecoderCache::Options{.layers = config_.layers,
                                .width = config_.block().key_value_width(),
                                .dtype = parameters_.dtype()},
      limits);
}

Tensor Gpt::step(State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<TransformerState&>(any_state);
  const nn::TraceStep traced(tokens);
  const auto [step, embedded] = state.cache.extend(tokens, embedding_, *position_);
  const Variable hidden =
      layers_(embedded, {.rows = step.rows, .step = &step, .cache = &state.cache});
  return newest_rows(hidden.value(), tokens, step);
}

bool Gpt::prepare_replay(State& state) const {
  return static_cast<TransformerState&>(state).prepare_replay(*position_);
}

Tensor Gpt::next_scores(const Tensor& hidden) const {
  return vocabulary_scores(hidden, output_table_);
}

}  // namespace nunchi
