// A small bidirectional encoder that several tests look at.
#pragma once

#include "nunchi/models/bert.h"
#include "nunchi/ops/gather_rows.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

inline BertConfig small_bert_config(std::int64_t vocabulary = 37) {
  BertConfig config;
  config.target_vocabulary = vocabulary;
  config.layers = 2;
  config.width = 40;
  config.heads = 2;
  config.feed_forward = 72;
  config.max_positions = 160;
  config.dropout = config.attention_dropout = 0;
  return config;
}

// With what came after BERT.
inline BertConfig modern_bert_config(std::int64_t vocabulary = 37) {
  BertConfig config = small_bert_config(vocabulary);
  config.norm_placement = nn::NormPlacement::pre;
  config.norm = NormKind::rms;
  config.activation = ActivationKind::swiglu;
  config.position = nn::PositionKind::rotary;
  config.kv_heads = 1;
  config.bias = false;
  return config;
}

inline std::unique_ptr<Bert> make_bert(ContextBase& context, const BertConfig& config,
                                       const nn::Parameters::Memory& memory = {}) {
  auto model = std::make_unique<Bert>(config);
  model->parameters().allocate(context, memory);
  model->parameters().initialize(11);
  return model;
}

// Texts of which every third token is to be said; the second text's none.
inline std::vector<MaskedText> masked_texts(const std::vector<Tokens>& sentences) {
  std::vector<MaskedText> texts;
  for (const Tokens& sentence : sentences) {
    MaskedText& text = texts.emplace_back(MaskedText{.inputs = sentence});
    if (texts.size() == 2) continue;
    for (std::size_t i = 0; i < sentence.size(); i += 3) {
      text.positions.push_back(static_cast<std::int32_t>(i));
      text.labels.push_back(sentence[i]);
      text.inputs[i] = 3;
    }
  }
  return texts;
}

inline Variable rows_to_say(const Bert& model, const MaskedBatch& batch) {
  return gather_rows(model.hidden(batch.inputs), batch.masked, batch.places);
}

inline VocabularyLoss loss_of(const Bert& model, const MaskedBatch& batch,
                              const VocabularyLossOptions& options = {}) {
  return model.loss(rows_to_say(model, batch), batch.masked, batch.labels, options);
}

// The loss of labels 0, 1, 0, 1, …
inline VocabularyLoss label_loss_of(const Bert& model, const TokenBatch& texts) {
  ContextBase& context = texts.ids.context();
  const auto count = static_cast<std::size_t>(texts.rows.sentences);
  const Ragged each = make_ragged(context, std::vector<std::int32_t>(count, 1));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(each.capacity), 0);
  for (std::size_t i = 1; i < count; i += 2) labels[i] = 1;
  return model.label_loss(model.summary(texts, each), each,
                          from_host(context, labels, {each.capacity}), {.smoothing = 0.1});
}

// What is said of every row, [rows, V], without dropout.
inline std::vector<float> scores_of(const Bert& model, const TokenBatch& texts) {
  return to_host<float>(model.scores(model.hidden(texts), texts.rows).rows(0, texts.rows.rows));
}

}  // namespace nunchi::testing
