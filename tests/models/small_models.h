// Small models of each family, and batches for them, shared by several tests.
#pragma once

#include "nunchi/models/families/bert.h"
#include "nunchi/models/families/gpt.h"
#include "nunchi/models/families/rnn.h"
#include "nunchi/models/families/transformer.h"
#include "nunchi/ops/gather_rows.h"
#include "tests/support.h"

namespace nunchi::testing {

// A preset with vocabularies of this size.
template <class Config>
Config preset_of(const std::string& name, std::int64_t vocabulary) {
  return model_preset(name)->with_input_sizes({vocabulary, vocabulary}).as<Config>();
}

// The options that all stacks of layers share.
template <class Config>
Config small_stack() {
  Config config;
  config.width = 40;
  config.heads = 2;
  config.feed_forward = 72;
  config.dropout = config.attention_dropout = 0;
  return config;
}

inline TransformerConfig small_config(std::int64_t vocabulary = 37) {
  auto config = small_stack<TransformerConfig>();
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.encoder_layers = config.decoder_layers = 2;
  return config;
}

// For a family with one stack and one vocabulary.
template <class Config>
Config small_text_config(std::int64_t vocabulary) {
  auto config = small_stack<Config>();
  config.target_vocabulary = vocabulary;
  config.layers = 2;
  config.max_positions = 160;
  return config;
}

inline GptConfig small_gpt_config(std::int64_t vocabulary = 37) {
  return small_text_config<GptConfig>(vocabulary);
}

inline BertConfig small_bert_config(std::int64_t vocabulary = 37) {
  return small_text_config<BertConfig>(vocabulary);
}

inline RnnConfig small_rnn(CellKind cell, RnnAttention attention, bool bidirectional = true,
                           std::int64_t vocabulary = 37) {
  RnnConfig config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.cell = cell;
  config.width = 40;
  config.bidirectional = bidirectional;
  config.attention = attention;
  config.dropout = 0;
  return config;
}

// Both cells with every attention, with a bidirectional encoder and without.
inline std::vector<RnnConfig> all_small_rnns(std::int64_t vocabulary = 37) {
  std::vector<RnnConfig> all;
  for (const CellKind cell : {CellKind::gru, CellKind::lstm}) {
    for (const auto attention : {RnnAttention::none, RnnAttention::additive, RnnAttention::dot}) {
      for (const bool both : {true, false}) {
        all.push_back(small_rnn(cell, attention, both, vocabulary));
      }
    }
  }
  return all;
}

// Makes some tokens likelier than others: with GPT-2's initial weights all are about equally
// likely.
inline void sharpen(nn::Parameters& parameters) {
  const Tensor& weights = parameters.weights();
  std::vector<double> values = to_host_f64(weights);
  for (double& value : values) value *= value == 1 ? 1 : 8;
  if (weights.dtype() == DType::f64) {
    copy_from_host(std::span<const double>(values), weights);
  } else {
    const std::vector<float> rounded(values.begin(), values.end());
    convert(from_host(weights.context(), rounded, weights.shape()), weights);
  }
  parameters.changed();
}

// A model with allocated, initialised weights.
template <class M>
std::unique_ptr<M> make_small(ContextBase& context, const typename M::Config& config,
                              const nn::Parameters::Memory& memory = {}) {
  auto model = std::make_unique<M>(config);
  model->parameters().allocate(context, memory);
  model->parameters().initialize(11);
  if (model->family() == "gpt") sharpen(model->parameters());
  return model;
}

// Sentences of these lengths; the tokens of sentence b depend only on b and the seed.
inline std::vector<Tokens> sentences_of(const std::vector<std::int32_t>& lengths,
                                        std::int64_t vocabulary, std::uint64_t seed) {
  std::vector<Tokens> sentences;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    Tokens tokens;
    for (const double u : random_values<double>(lengths[b], seed * 1000 + b)) {
      tokens.push_back(static_cast<std::int32_t>((u + 1) / 2 * static_cast<double>(vocabulary)));
    }
    sentences.push_back(std::move(tokens));
  }
  return sentences;
}

// Sentences and their translations, in one vocabulary.
inline PairBatch pair_batch(ContextBase& context, std::span<const Tokens> sources,
                            std::span<const Tokens> targets, std::int64_t vocabulary,
                            std::int32_t first_sentence = 0) {
  return make_pair_batch(make_token_batch(context, sources, vocabulary, first_sentence), targets,
                         vocabulary, {.tokens = kTokens, .first_sentence = first_sentence});
}

// The logits of every target row, [rows, V], without dropout. `model` is a Transformer or an Rnn.
inline std::vector<float> logits_of(const auto& model, const PairBatch& batch) {
  const Variable hidden = model.decode(batch.target, model.encode(batch.source));
  return to_host<float>(
      model.logits(hidden, batch.target.rows).value().rows(0, batch.target.rows.rows));
}

// Texts in which every third token is masked; the second text has no masked tokens.
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

// The hidden rows of the masked tokens.
inline Variable masked_rows(const Bert& model, const MaskedBatch& batch) {
  return gather_rows(model.hidden(batch.inputs), batch.masked, batch.masked_rows);
}

inline VocabularyLoss loss_of(const Bert& model, const MaskedBatch& batch,
                              const VocabularyLossOptions& options = {}) {
  return model.loss(masked_rows(model, batch), batch.masked, batch.labels, options);
}

// The loss if the texts have the labels 0, 1, 0, 1, …
inline VocabularyLoss label_loss_of(const Bert& model, const TokenBatch& texts) {
  ContextBase& context = texts.ids.context();
  const auto count = static_cast<std::size_t>(texts.rows.sentences);
  const Ragged row_per_text = make_ragged(context, std::vector<std::int32_t>(count, 1));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(row_per_text.capacity), 0);
  for (std::size_t i = 1; i < count; i += 2) labels[i] = 1;
  return model.label_loss(model.summary(texts, row_per_text), row_per_text,
                          from_host(context, labels, {row_per_text.capacity}), {.smoothing = 0.1});
}

// The scores of every row, [rows, V], without dropout.
inline std::vector<float> scores_of(const Bert& model, const TokenBatch& texts) {
  return to_host<float>(model.scores(model.hidden(texts), texts.rows).rows(0, texts.rows.rows));
}

}  // namespace nunchi::testing
