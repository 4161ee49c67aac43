// The projection to the vocabulary and the label-smoothed cross-entropy after it, over chunks of
// tokens: all logits together never exist.
//
// The gradients of the hidden rows, of the weight and of the bias are made on the way forward,
// chunk by chunk, so the loss must be where the way back begins (its own gradient is one), and a
// recorded loss has added to the weight's gradient even if nobody goes back from it.
#pragma once

#include "nunchi/ops/linear.h"
#include "nunchi/tensor/ragged.h"

namespace nunchi {

struct VocabularyLossOptions {
  double smoothing = 0;
  std::int64_t chunk = 0;  // rows of logits that exist at once; 0: as the device likes it
};

struct VocabularyLoss {
  Variable total;  // f64 [1]: the sum over all tokens
  Tensor tokens;   // [capacity]: each token's; zero past the count
};

// hidden [T, C], projection: weight [V, C] and perhaps a bias [V], targets i32 [T].
VocabularyLoss vocabulary_loss(const Variable& hidden, const Linear& projection,
                               const Tensor& targets, const Ragged& batch,
                               const VocabularyLossOptions& options);
inline VocabularyLoss vocabulary_loss(const Variable& hidden, const Variable& weight,
                                      const Tensor& targets, const Ragged& batch,
                                      const VocabularyLossOptions& options) {
  return vocabulary_loss(hidden, Linear{.weight = weight}, targets, batch, options);
}

}  // namespace nunchi
