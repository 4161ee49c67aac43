// Sentences of tokens on a device, one after another without padding.
#pragma once

#include <span>

#include "nunchi/tensor/ragged.h"
#include "nunchi/text/tokens.h"

namespace nunchi {

struct TokenBatch {
  Ragged rows;
  Tensor ids;                   // i32 [capacity]
  std::int64_t vocabulary = 0;  // every id is below this
};

// `first_sentence` is the index of the first sentence among all sentences of a training step; it
// keys the random draws. Throws Error when a token is not in [0, vocabulary).
TokenBatch make_token_batch(ContextBase& context, std::span<const Tokens> sentences,
                            std::int64_t vocabulary, std::int32_t first_sentence = 0);

// The tokens of the sentences as one tensor, i32 [rows.capacity]; the tail is zero. Throws Error
// when a token is not in [0, vocabulary).
Tensor make_token_ids(ContextBase& context, std::span<const Tokens> sentences, const Ragged& rows,
                      std::int64_t vocabulary);

}  // namespace nunchi
