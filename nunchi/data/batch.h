// Batches that models are trained on, on a device.
#pragma once

#include <span>
#include <vector>

#include "nunchi/data/source.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

// Sources and their targets under teacher forcing: the decoder reads its start token and the target
// y, and is to generate y and the end token.
struct PairBatch {
  Source source;
  TokenBatch target;  // start y
  Tensor labels;      // i32 [capacity]: y end
};

struct PairBatchOptions {
  DecoderTokens tokens;             // start and end exist
  std::int32_t first_sentence = 0;  // see make_token_batch
};

// On the source's context. Throws Error when there are not as many targets as sources, or when a
// token is not in [0, vocabulary).
PairBatch make_pair_batch(Source source, std::span<const Tokens> targets, std::int64_t vocabulary,
                          const PairBatchOptions& options);

// Texts for a language model: row t holds a token, and its label is the next one.
struct TextBatch {
  TokenBatch inputs;
  Tensor labels;  // i32 [capacity]
};

// Each text of n + 1 tokens gives n inputs and n labels. Throws Error for a text without a token to
// predict.
TextBatch make_text_batch(ContextBase& context, std::span<const Tokens> texts,
                          std::int64_t vocabulary, std::int32_t first_sentence = 0);

// Texts of which some tokens are to be predicted from all the others.
struct MaskedText {
  Tokens inputs;                        // as the model reads them, <s> and </s> included
  std::vector<std::int32_t> positions;  // of the tokens to predict among the inputs, ascending
  Tokens labels;                        // the original token at each position
};
struct MaskedBatch {
  TokenBatch inputs;
  Ragged masked;  // the tokens to predict, as many rows of each text as it has positions
  Tensor places;  // i32 [masked.capacity] their rows among the inputs
  Tensor labels;  // i32 [masked.capacity]
};
// Throws Error for a position outside of its text, or when there are not as many labels.
MaskedBatch make_masked_batch(ContextBase& context, std::span<const MaskedText> texts,
                              std::int64_t vocabulary, std::int32_t first_sentence = 0);

}  // namespace nunchi
