// A way of training: what is asked of a model, given sentences. Each is one pair of files here.
#pragma once

#include "nunchi/autograd/variable.h"
#include "nunchi/data/batch_queue.h"

namespace nunchi {

// Refers to a model, which outlives it.
class Objective {
 public:
  virtual ~Objective() = default;

  // The loss of a batch, summed over batch.target_tokens tokens: f64 [1]. `first_sentence` is the
  // index of the batch's first sentence in its step, which random draws depend on.
  //
  // While a tape records, this is what is learned from: dropout and label smoothing apply. Without
  // one it is the negative log-likelihood.
  virtual Variable loss(const HostBatch& batch, std::int32_t first_sentence) const = 0;
};

}  // namespace nunchi
