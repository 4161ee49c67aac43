// The projection to the vocabulary and the label-smoothed cross-entropy after it, over chunks of
// tokens: the full logits never exist.
//
// The gradients of the hidden rows, the weight and the bias are computed in the forward pass, chunk
// by chunk. So the backward pass must start at this loss, with a gradient of one. While a tape
// records, vocabulary_loss() itself adds to the gradients of weight and bias, even if no backward
// pass follows.
#pragma once

#include "nunchi/ops/linear.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct VocabularyLossOptions {
  double smoothing = 0;
  std::int64_t chunk = 0;  // rows of logits per chunk; 0: the device's default
};

struct VocabularyLoss {
  Variable total;  // f64 [1]: the sum over all tokens
  Tensor tokens;   // [capacity]: the loss of each token; zero past the batch's last token
};

// hidden [T, C], projection: weight [V, C] and an optional bias [V], targets i32 [T].
VocabularyLoss vocabulary_loss(const Variable& hidden, const Linear& projection,
                               const Tensor& targets, const Ragged& batch,
                               const VocabularyLossOptions& options);
inline VocabularyLoss vocabulary_loss(const Variable& hidden, const Variable& weight,
                                      const Tensor& targets, const Ragged& batch,
                                      const VocabularyLossOptions& options) {
  return vocabulary_loss(hidden, Linear{.weight = weight}, targets, batch, options);
}

}  // namespace nunchi
