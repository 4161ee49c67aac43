// Masked language modelling: some tokens of a text are masked, and the model predicts them from all
// the others.
//
//   text     The cat sat on the mat .
//   inputs   <s> The cat [MASK] on the mat . </s>        and the label is "sat"
//
// Of the tokens to predict, 80 % are replaced by the mask, 10 % by a random token, and 10 % are
// kept, so that the model has to look at every token. The choice is drawn from (seed, step,
// sentence): it differs in each epoch and does not depend on the batch.
#pragma once

#include <vector>

#include "nunchi/models/sequence_model.h"
#include "nunchi/training/objectives/objectives.h"
#include "nunchi/training/objectives/text_draws.h"

namespace nunchi {

struct MaskOptions {
  double fraction = 0.15;    // fraction of a text's tokens to predict; at least one token is
  bool whole_words = false;  // choose all pieces of a word or none
};

// Chooses and masks the tokens to predict. Immutable.
class Masker {
 public:
  // Throws Error when the tokenizer has no symbol for masked tokens.
  Masker(const Tokenizer& tokenizer, const MaskOptions& options);

  // The masked text between <s> and </s>, cut to `max_length` tokens in all. All sets of tokens are
  // equally likely; with whole_words, words are taken in random order if they fit into the
  // fraction. A text without tokens has none to predict.
  MaskedText operator()(const Tokens& text, std::int64_t max_length, const TextDraws& draws) const;

 private:
  // The positions of the tokens to predict, ascending.
  std::vector<std::int32_t> choose_positions(std::span<const std::int32_t> text,
                                             const TextDraws& draws) const;

  MaskOptions options_;
  SpecialTokens special_;
  std::int32_t mask_;
  std::vector<bool> starts_word_;           // by token id; empty unless whole_words
  std::vector<std::int32_t> replacements_;  // ids of the random tokens that may replace a token
};

class MaskedObjective final : public Objective {
 public:
  // Throws Error when the model cannot predict masked tokens or the tokenizer has no mask symbol.
  explicit MaskedObjective(const ObjectiveParts& parts);

  // The targets are lines of a text.
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const MaskedLanguageModel& model_;
  ContextBase& context_;
  Masker masker_;
  double label_smoothing_;
};

// The number of rows of `scores` [R, V] whose highest score is at their label. Rows without a label
// are ignored: row i has label i.
std::int64_t count_correct(const Tensor& scores, std::span<const std::int32_t> labels);

}  // namespace nunchi
