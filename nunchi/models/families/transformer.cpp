#include "nunchi/models/families/transformer.h"

#include <cmath>

#include "nunchi/models/decoding_state.h"
#include "nunchi/ops/linear.h"

namespace nunchi {

// With V tokens, width C, feed-forward F and L layers in each stack, the paper's model has
//   V·C                                       the one embedding table
//   L·(4·C² + 4·C + 2·C·F + F + C + 4·C)      encoder: Q, K, V, O; feed-forward; two norms
//   L·(8·C² + 8·C + 2·C·F + F + C + 6·C)      decoder: two attentions; feed-forward; three norms
// parameters: base with V = 37,000 has 18,944,000 + 18,914,304 + 25,224,192 = 63,082,496.
Transformer::Transformer(const TransformerConfig& config)
    : config_(config.checked()),
      tables_(parameters_, config.tables()),
      source_position_(nn::make_position(parameters_, "encoder.position",
                                         config.position_options(nn::Sees::all))),
      target_position_(nn::make_position(parameters_, "decoder.position",
                                         config.position_options(nn::Sees::past))),
      source_embedding_(parameters_, tables_.source, config.embedding_options()),
      target_embedding_(parameters_, tables_.target, config.embedding_options()),
      encoder_layers_(parameters_,
                      {.name = "encoder", .layers = config.encoder_layers, .block = config.block()},
                      *source_position_),
      memory_kv_(parameters_, "decoder.memory_kv",
                 {.inputs = config.width,
                  .outputs = config.block().key_value_width() * config.decoder_layers,
                  .stacked = std::int64_t{2} * config.decoder_layers,
                  .bias = config.bias}),
      decoder_layers_(
          parameters_,
          {.name = "decoder",
           .layers = config.decoder_layers,
           .block = config.block(),
           .output_scale =
               config.scale_output ? 1 / std::sqrt(static_cast<double>(config.width)) : 1},
          *target_position_) {}

Variable Transformer::encode(const TokenBatch& source) const {
  check_vocabulary(source, config_.source_vocabulary, "source");
  return through(encoder_layers_, source_embedding_(source.ids, source.rows, *source_position_),
                 source.rows);
}

Variable Transformer::memory_of_layer(const Variable& all_kv, std::size_t i) const {
  const std::int64_t width = config_.block().key_value_width();
  return all_kv.columns(static_cast<std::int64_t>(i) * width, width);
}

Variable Transformer::decode(const TokenBatch& target, const Variable& memory,
                             const Ragged& source) const {
  check_vocabulary(target, config_.target_vocabulary, "target");
  const Variable all_kv = memory_kv_(memory);
  return decoder_layers_(
      target_embedding_(target.ids, target.rows, *target_position_), target.rows,
      [&](const nn::DecoderLayer& layer, const nn::Stream& stream, std::size_t i) {
        return layer(stream, target.rows, memory_of_layer(all_kv, i), source, static_cast<int>(i));
      });
}

Variable Transformer::logits(const Variable& hidden, const Ragged& rows) const {
  const Variable scores = linear(hidden, {.weight = tables_.output});
  tap(Tap::logits, {"decoder", -1, ""}, scores.value(), rows);
  return scores;
}

VocabularyLoss Transformer::loss(const PairBatch& batch,
                                 const VocabularyLossOptions& options) const {
  const Variable memory = encode(batch.source);
  const Variable hidden = decode(batch.target, memory, batch.source.rows);
  return vocabulary_loss(hidden, tables_.output, batch.labels, batch.target.rows, options);
}

namespace {

struct TranslationState final : DecodingState {
  using DecodingState::DecodingState;
  // Of each layer, [S, key_value_width or more]: computed once for all steps.
  std::vector<Variable> memory_kv;
};

}  // namespace

std::unique_ptr<SequenceModel::State> Transformer::start(const TokenBatch& source) const {
  ContextBase& context = source.ids.context();
  const nn::DecoderCache::Options options{.layers = config_.decoder_layers,
                                          .width = config_.block().key_value_width(),
                                          .dtype = parameters_.dtype(),
                                          .memory = &source.rows};
  auto state = std::make_unique<TranslationState>(context, options);
  for (std::size_t i = 0; i < decoder_layers_.size(); ++i) {
    state->memory_kv.emplace_back(
        nn::key_value_rows(context, options.dtype, source.rows.capacity, options.width));
  }
  remember(source, *state);
  return state;
}

// The encoder's output as each layer's keys and values.
void Transformer::remember(const TokenBatch& source, State& any_state) const {
  auto& state = static_cast<TranslationState&>(any_state);
  const Variable all_kv = memory_kv_(encode(source));
  for (std::size_t i = 0; i < decoder_layers_.size(); ++i) {
    scatter_rows(memory_of_layer(all_kv, i).value(), source.rows, {},
                 state.memory_kv[i].value().columns(0, config_.block().key_value_width()));
  }
}

bool Transformer::restart(State& any_state, const TokenBatch& source) const {
  auto& state = static_cast<TranslationState&>(any_state);
  if (!state.cache.fits(source.rows) ||
      source.rows.capacity > state.memory_kv.front().value().size(0)) {
    return false;
  }
  state.cache.restart(source.rows);
  remember(source, state);
  return true;
}

Tensor Transformer::step(State& any_state, const nn::StepTokens& tokens) const {
  auto& state = static_cast<TranslationState&>(any_state);
  const auto [step, embedded] = state.cache.extend(tokens, target_embedding_, *target_position_);
  const Variable hidden = decoder_layers_.step(
      embedded, step.rows,
      [&](const nn::DecoderLayer& layer, const nn::Stream& stream, std::size_t i) {
        return layer.step(stream, step, state.cache.layer(i), state.memory_kv[i]);
      });
  return newest_rows(hidden.value(), tokens, step);
}

bool Transformer::reserve(State& state, const ReplayedSteps& steps) const {
  return static_cast<TranslationState&>(state).reserve(*target_position_, steps);
}

Tensor Transformer::next_scores(const Tensor& hidden) const {
  return vocabulary_scores(hidden, tables_.output);
}

}  // namespace nunchi
