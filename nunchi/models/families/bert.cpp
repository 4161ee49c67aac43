#include "nunchi/models/families/bert.h"

#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/models/embedding_tables.h"
#include "nunchi/ops/activation.h"
#include "nunchi/ops/gather_rows.h"

namespace nunchi {
namespace {

bool is_post(const BertConfig& config) { return config.norm_placement == nn::NormPlacement::post; }

}  // namespace

// With V tokens, N positions, width C, feed-forward F and L layers it has
//   V·C + N·C + 2·C + L·(4·C² + 4·C + 2·C·F + F + C + 4·C) + C² + 3·C + V
// parameters: BERT base with V = 30,522 has 109,512,762 (Hugging Face's BertForMaskedLM also has
// two rows of segment embeddings).
Bert::Bert(const BertConfig& config)
    : Model(config),
      config_(checked(config)),
      table_(parameters_.add("encoder.embedding.weight", {config.target_vocabulary, config.width},
                             nn::Init::normal(1 / std::sqrt(static_cast<double>(config.width))),
                             nn::ParameterUse::product)),
      position_(nn::make_position(parameters_, "encoder.position",
                                  config.position_options(nn::AttentionMask::none))),
      // With post-norm, the dropout comes after the embedding's norm.
      embedding_(parameters_, table_,
                 {.width = config.width,
                  .scaled = config.scale_embeddings,
                  .dropout = is_post(config) ? 0 : config.dropout}),
      embedding_norm_(is_post(config)
                          ? nn::make_norm(parameters_, "encoder.embedding.norm", config.norm,
                                          config.width, config.norm_epsilon)
                          : Norm()),
      embedding_dropout_{config.dropout, parameters_.next_operation_id()},
      layers_(parameters_, {.name = "encoder", .layers = config.layers, .block = config.block()},
              *position_),
      dense_(parameters_, "masked.dense",
             {.inputs = config.width, .outputs = config.width, .bias = config.bias}),
      norm_(nn::make_norm(parameters_, "masked.norm", config.norm, config.width,
                          config.norm_epsilon)),
      bias_(parameters_.add("masked.bias", {config.target_vocabulary}, nn::Init::zeros())) {
  if (config.labels.empty()) return;
  const std::string name = kClassifier;
  const auto labels = static_cast<std::int64_t>(config.labels.size());
  label_head_.emplace(LabelHead{
      .dense = {parameters_, name + "dense", {.inputs = config.width, .outputs = config.width}},
      .dropout = {config.dropout, parameters_.next_operation_id()},
      .output = {parameters_, name + "output", {.inputs = config.width, .outputs = labels}}});
}

Variable Bert::hidden(const TokenBatch& text) const {
  check_vocabulary(text, vocabulary(), "text");
  Variable embedded = embedding_(text.ids, text.rows, *position_, "encoder");
  if (embedding_norm_.gamma.defined()) {
    embedded = residual_norm(embedded, {}, text.rows, embedding_norm_).out;
    embedded = with_dropout(embedded, text.rows, embedding_dropout_);
  }
  return layers_(embedded, {.rows = text.rows});
}

Variable Bert::transformed(const Variable& hidden, const Ragged& rows) const {
  return residual_norm(activation(dense_(hidden), rows, ActivationKind::gelu), {}, rows, norm_).out;
}

Tensor Bert::scores(const Variable& hidden, const Ragged& rows) const {
  const Tensor scores = vocabulary_scores(transformed(hidden, rows).value(), projection());
  write_to_trace(Tap::logits, {"encoder", -1, ""}, scores, rows);
  return scores;
}

VocabularyLoss Bert::loss(const Variable& hidden, const Ragged& rows, const Tensor& labels,
                          const VocabularyLossOptions& options) const {
  return vocabulary_loss(transformed(hidden, rows), projection(), labels, rows, options);
}

const Bert::LabelHead& Bert::label_head() const {
  if (!label_head_) throw Error("this model has no labels.");
  return *label_head_;
}

Variable Bert::summary(const TokenBatch& texts, const Ragged& row_per_text) const {
  const LabelHead& head = label_head();
  const Variable first = gather_rows(hidden(texts), row_per_text, texts.rows.begin);
  return activation(head.dense(first), row_per_text, ActivationKind::tanh, head.dropout);
}

Tensor Bert::label_scores(const Variable& summary) const {
  return vocabulary_scores(summary.value(), label_head().output.parameters());
}

VocabularyLoss Bert::label_loss(const Variable& summary, const Ragged& row_per_text,
                                const Tensor& labels, const VocabularyLossOptions& options) const {
  return vocabulary_loss(summary, label_head().output.parameters(), labels, row_per_text, options);
}

}  // namespace nunchi
