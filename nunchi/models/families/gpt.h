// A causal language model: GPT-2 and, by options, its successors.
//
//   ids → embedding → layers, in which a token attends to itself and those before it → hidden
//     → vocabulary
#pragma once

#include "nunchi/models/families/gpt_config.h"
#include "nunchi/models/layer_stack.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/nn/embedding.h"

namespace nunchi {

class Gpt final : public Model, public LanguageModel {
 public:
  using Config = GptConfig;

  explicit Gpt(const GptConfig& config);

  // The output of the stack, [T, C]; row t depends on tokens 0 to t.
  Variable hidden(const TokenBatch& text) const;
  // Scores of the next token for each row of hidden [T, C]: [T, V].
  Variable logits(const Variable& hidden, const Ragged& rows) const;
  VocabularyLoss loss(const TextBatch& batch, const VocabularyLossOptions& options) const override;

  // Generation, token by token: the same layers with a cache.
  std::int64_t target_vocabulary() const override { return config_.target_vocabulary; }
  std::int64_t max_length() const override { return config_.max_length(); }
  std::unique_ptr<State> make_state(ContextBase& context,
                                    const nn::CacheLimits& limits) const override;
  Tensor step(State& state, const nn::StepTokens& tokens) const override;
  bool prepare_replay(State& state) const override;
  Tensor next_scores(const Tensor& hidden) const override;
  Variable output_table() const override { return output_table_; }

  const nn::Position* position(std::string_view) const override { return position_.get(); }

 private:
  GptConfig config_;
  Variable table_, output_table_;  // [V, C]; one parameter or two
  std::unique_ptr<nn::Position> position_;
  nn::Embedding embedding_;
  LayerStack<nn::EncoderLayer> layers_;
};

}  // namespace nunchi
