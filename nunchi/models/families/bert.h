// A bidirectional encoder: the original BERT without its segments, or later variants by options.
//
//   ids → embedding → layers, in which a token attends to its whole text → hidden
//     masked rows → dense, GELU, norm → vocabulary
//     first rows  → dense, tanh → labels
//
// A text begins with <s>, whose row represents the whole text, and ends with </s>.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nunchi/models/families/bert_config.h"
#include "nunchi/models/layer_stack.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"

namespace nunchi {

class Bert final : public Model, public MaskedLanguageModel, public Classifier {
 public:
  using Config = BertConfig;

  explicit Bert(const BertConfig& config);

  // The classification layers: a run that starts from a model with other labels initialises them
  // anew.
  bool belongs_to_task(const std::string& parameter) const override {
    return parameter.starts_with(kClassifier);
  }

  std::int64_t vocabulary() const override { return config_.target_vocabulary; }
  std::int64_t width() const override { return config_.width; }
  std::int64_t max_length() const override { return config_.max_length(); }
  Variable hidden(const TokenBatch& text) const override;
  Tensor scores(const Variable& hidden, const Ragged& rows) const override;
  VocabularyLoss loss(const Variable& hidden, const Ragged& rows, const Tensor& labels,
                      const VocabularyLossOptions& options) const override;

  const std::vector<std::string>& labels() const override { return config_.labels; }
  Variable summary(const TokenBatch& texts, const Ragged& row_per_text) const override;
  Tensor label_scores(const Variable& summary) const override;
  VocabularyLoss label_loss(const Variable& summary, const Ragged& row_per_text,
                            const Tensor& labels,
                            const VocabularyLossOptions& options) const override;

  const nn::Position* position(std::string_view) const override { return position_.get(); }

 private:
  static constexpr const char* kClassifier = "classifier.";

  struct LabelHead {
    nn::Linear dense;
    Dropout dropout;
    nn::Linear output;
  };
  const LabelHead& label_head() const;  // throws Error when the model has no labels
  Linear projection() const { return {.weight = table_, .bias = bias_}; }  // to the vocabulary
  // The input of the projection.
  Variable transformed(const Variable& hidden, const Ragged& rows) const;

  BertConfig config_;
  Variable table_;  // [V, C], shared by the embedding and the vocabulary projection
  std::unique_ptr<nn::Position> position_;
  nn::Embedding embedding_;
  Norm embedding_norm_;  // undefined with pre-norm, where the first layer normalises its input
  Dropout embedding_dropout_;
  LayerStack<nn::EncoderLayer> layers_;
  nn::Linear dense_;
  Norm norm_;
  Variable bias_;  // [V]
  std::optional<LabelHead> label_head_;
};

}  // namespace nunchi
