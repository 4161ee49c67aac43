// The most likely tokens of each row of scores. Inference only.
#pragma once

#include "nunchi/tensor/tensor.h"

namespace nunchi {

struct TopTokens {
  Tensor ids;        // i32 [R, n], most likely first; among equals, the lower id first
  Tensor log_probs;  // [R, n] in the scores' accumulator type
};

// scores [R, V], 1 <= n <= V.
TopTokens top_tokens(const Tensor& scores, std::int64_t n);

}  // namespace nunchi
