// One step of learning: forward, loss, backward, clip, step.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nunchi/models/model.h"
#include "nunchi/training/objectives/objective.h"
#include "nunchi/training/optimizer.h"

namespace nunchi {

struct LearnedStep {
  double loss = 0;  // summed over the target tokens
  std::int64_t tokens = 0;
  std::int64_t read = 0;     // tokens that the model went through
  double gradient_norm = 0;  // of the mean gradient, before clipping
  bool finite = true;        // if not, nothing was learned: weights and moments are as before
};

// Model and objective outlive it.
class Learner {
 public:
  Learner(Model& model, const Objective& objective, const AdamOptions& options);

  // Learns from a step's micro-batches, whose gradients are summed in their order and divided once
  // by the step's target tokens. Draws depend on `key` and on a sentence's index among all of the
  // step's.
  LearnedStep step(std::span<const HostBatch> batches, const RandomKey& key, double learning_rate);

  // The operation that made the first number that is not finite, when these batches are gone
  // through once more with the same key. Changes neither weights nor moments; clears gradients.
  std::string first_not_finite(std::span<const HostBatch> batches, const RandomKey& key);

  AdamOptimizer& optimizer() { return optimizer_; }
  const AdamOptimizer& optimizer() const { return optimizer_; }

 private:
  Model& model_;
  const Objective& objective_;
  AdamOptimizer optimizer_;
};

}  // namespace nunchi
