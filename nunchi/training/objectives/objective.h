// A training objective computes the loss of a model on a batch. Each objective is one pair of files
// here and one entry in objectives.cpp.
#pragma once

#include <optional>

#include "nunchi/autograd/variable.h"
#include "nunchi/data/batch_queue.h"

namespace nunchi {

struct ObjectiveLoss {
  Variable total;                     // f64 [1], the sum over the target tokens
  std::int64_t target_tokens = 0;     // tokens to predict
  std::int64_t tokens_processed = 0;  // tokens that the model reads; 0: the same as target_tokens
  // Number of target tokens to which the model gives the highest score. Set only in evaluating
  // mode, by objectives that report accuracy.
  std::optional<std::int64_t> correct = {};
};

// Refers to a model, which must outlive the objective.
class Objective {
 public:
  virtual ~Objective() = default;

  // The loss of a batch. `first_sentence` is the index of the batch's first sentence in its step,
  // which random draws depend on.
  //
  // Training mode (device/mode.h) applies dropout, label smoothing and random changes to the text.
  // In evaluating mode the loss is the negative log-likelihood, the same at each call.
  virtual ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const = 0;
};

}  // namespace nunchi
