// A training objective: the loss of a model on a batch. Each objective is one pair of files here
// and one line in objectives.cpp.
#pragma once

#include <optional>

#include "nunchi/autograd/variable.h"
#include "nunchi/data/batch_queue.h"

namespace nunchi {

struct ObjectiveLoss {
  Variable total;           // f64 [1], the sum over the tokens
  std::int64_t tokens = 0;  // to predict
  std::int64_t read = 0;    // that the model read for them; 0: as many
  // Of the tokens to predict, how many the model finds likeliest. Only in evaluating mode, and of
  // objectives that are measured by it.
  std::optional<std::int64_t> right = {};
};

// Refers to a model, which outlives it.
class Objective {
 public:
  virtual ~Objective() = default;

  // The loss of a batch. `first_sentence` is the index of the batch's first sentence in its step,
  // which random draws depend on.
  //
  // In training mode (device/mode.h) dropout, label smoothing and random changes to the text apply.
  // In evaluating mode it is the negative log-likelihood, the same at each call.
  virtual ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const = 0;
};

}  // namespace nunchi
