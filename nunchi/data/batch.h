// Batches that models are trained on, on a device.
#pragma once

#include <span>
#include <vector>

#include "nunchi/data/source.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

// Sources and targets for teacher forcing: the decoder reads its start token and the target y, and
// learns to generate y and the end token.
struct PairBatch {
  Source source;
  TokenBatch target;  // the start token, then y
  Tensor labels;      // i32 [capacity]: y, then the end token
};

struct PairBatchOptions {
  DecoderTokens tokens;             // start and end must exist
  std::int32_t first_sentence = 0;  // see make_token_batch
};

// On the source's context. Throws Error when the numbers of sources and targets differ, or when a
// token is not in [0, vocabulary).
PairBatch make_pair_batch(Source source, std::span<const Tokens> targets, std::int64_t vocabulary,
                          const PairBatchOptions& options);

// Texts for a language model: the label of each input token is the next token.
struct TextBatch {
  TokenBatch inputs;
  Tensor labels;  // i32 [capacity]
};

// Each text of n + 1 tokens gives n inputs and n labels. Throws Error for a text without a token to
// predict.
TextBatch make_text_batch(ContextBase& context, std::span<const Tokens> texts,
                          std::int64_t vocabulary, std::int32_t first_sentence = 0);

// A text in which some tokens are to be predicted from all the others.
struct MaskedText {
  Tokens inputs;                        // as the model reads them, <s> and </s> included
  std::vector<std::int32_t> positions;  // where `inputs` has tokens to predict, ascending
  Tokens labels;                        // the original token at each position
};
struct MaskedBatch {
  TokenBatch inputs;
  Ragged masked;       // one row for each token to predict, grouped by text
  Tensor masked_rows;  // i32 [masked.capacity]: the row of each token to predict in `inputs`
  Tensor labels;       // i32 [masked.capacity]
};
// Throws Error for a position outside of its text, or when positions and labels differ in number.
MaskedBatch make_masked_batch(ContextBase& context, std::span<const MaskedText> texts,
                              std::int64_t vocabulary, std::int32_t first_sentence = 0);

}  // namespace nunchi
