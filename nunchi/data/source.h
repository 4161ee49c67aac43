// The input of an encoder: a batch of sentences of tokens, or of examples made of rows of features.
#pragma once

#include <utility>
#include <variant>

#include "nunchi/data/feature_batch.h"
#include "nunchi/data/token_batch.h"

namespace nunchi {

// A value; copies share their tensors.
class Source {
 public:
  Source() = default;  // a batch without sentences
  Source(TokenBatch tokens) : input_(std::move(tokens)) {}
  Source(FeatureBatch features) : input_(std::move(features)) {}

  // Null when the source consists of the other kind.
  const TokenBatch* tokens() const { return std::get_if<TokenBatch>(&input_); }
  const FeatureBatch* features() const { return std::get_if<FeatureBatch>(&input_); }

  // Which rows belong to which sentence.
  const Ragged& rows() const {
    return std::visit([](const auto& batch) -> const Ragged& { return batch.rows; }, input_);
  }
  // The context that holds the source.
  ContextBase& context() const { return rows().offsets.context(); }

 private:
  std::variant<TokenBatch, FeatureBatch> input_;
};

}  // namespace nunchi
