// Small recurrent models that several tests look at.
#pragma once

#include "nunchi/models/rnn.h"
#include "tests/models/small_models.h"

namespace nunchi::testing {

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

// Both cells with every attention, the encoder reading both ways or one.
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

inline std::unique_ptr<Rnn> make_rnn(ContextBase& context, const RnnConfig& config,
                                     const nn::Parameters::Memory& memory = {}) {
  auto model = std::make_unique<Rnn>(config);
  model->parameters().allocate(context, memory);
  model->parameters().initialize(11);
  return model;
}

// Logits of every target row, [rows, V], without dropout.
inline std::vector<float> logits_of(const Rnn& model, const PairBatch& batch) {
  const Variable hidden = model.decode(batch.target, model.encode(batch.source), batch.source.rows);
  return to_host<float>(
      model.logits(hidden, batch.target.rows).value().rows(0, batch.target.rows.rows));
}

}  // namespace nunchi::testing
