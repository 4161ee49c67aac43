// Masked language modelling: some tokens of a text are taken out, and the model is to say them from
// all the others.
//
//   text     The cat sat on the mat .
//   inputs   <s> The cat [MASK] on the mat . </s>        and "sat" is to be said
//
// Of the tokens to be said, 80 % are replaced by the mask, 10 % by any other token and 10 % stay as
// they are, so that the model has to look at every token. Which they are is drawn from (seed, step,
// sentence): anew in each epoch, whatever the batch.
#pragma once

#include <vector>

#include "nunchi/models/sequence_model.h"
#include "nunchi/training/objectives/objectives.h"
#include "nunchi/training/objectives/text_draws.h"

namespace nunchi {

struct MaskOptions {
  double share = 0.15;       // of a text's tokens, but one at least
  bool whole_words = false;  // all pieces of a word or none
};

// Immutable once made.
class Masker {
 public:
  // Throws Error when the tokenizer has no symbol for masked tokens.
  Masker(const Tokenizer& tokenizer, const MaskOptions& options);

  // The text between <s> and </s>, cut to `longest` tokens in all. Every choice of so many tokens
  // is equally likely; words are taken as long as they fit in. A text without tokens has none to
  // say.
  MaskedText operator()(const Tokens& text, std::int64_t longest, const TextDraws& draws) const;

 private:
  std::vector<std::int32_t> chosen(std::span<const std::int32_t> text,
                                   const TextDraws& draws) const;

  MaskOptions options_;
  SpecialTokens special_;
  std::int32_t mask_;
  std::vector<bool> begins_word_;     // by token; empty unless words are asked for
  std::vector<std::int32_t> others_;  // what may take a token's place
};

class MaskedObjective final : public Objective {
 public:
  // Throws Error when the model does not fill in or the tokenizer has no mask.
  explicit MaskedObjective(const ObjectiveParts& parts);

  // The targets are lines of a text.
  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override;

 private:
  const MaskedLanguageModel& model_;
  ContextBase& context_;
  Masker masker_;
  double label_smoothing_;
};

// How many rows of scores [R, V] have their highest at their label; of the first rows, as many as
// there are labels.
std::int64_t count_right(const Tensor& scores, std::span<const std::int32_t> labels);

}  // namespace nunchi
