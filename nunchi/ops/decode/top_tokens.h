// The most likely tokens of each row of scores. Inference only.
#pragma once

#include "nunchi/tensor/tensor.h"

namespace nunchi {

struct TopTokens {
  Tensor ids;        // i32 [R, n], most likely first, of equals the lower
  Tensor log_probs;  // [R, n] in the type that scores are summed in
};

// scores [R, V], 1 <= n <= V.
TopTokens top_tokens(const Tensor& scores, std::int64_t n);

}  // namespace nunchi
