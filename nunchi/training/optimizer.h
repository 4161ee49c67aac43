// Adam and AdamW over a model's flat buffers, with clipping by the global norm.
#pragma once

#include "nunchi/kernels/optimizer.h"
#include "nunchi/nn/parameters.h"

namespace nunchi {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;  // decoupled (AdamW), applied to matrices only; 0: plain Adam
  double max_norm = 0;      // gradients are clipped to this global norm; 0: no clipping
};

class AdamOptimizer {
 public:
  // `parameters` must have gradients and outlive the optimiser.
  AdamOptimizer(nn::Parameters& parameters, const AdamOptions& options);

  struct Step {
    double learning_rate = 0;
    double tokens = 1;   // number of target tokens; the gradients are divided by it
    Tensor losses = {};  // f64 [any], losses of the step's batches; may be undefined
  };
  // Updates the weights and clears the gradients. If a gradient or a loss is NaN or infinite, the
  // weights stay unchanged, and report() says so.
  void step(const Step& step);
  // The report of the last step; waits until the device has finished it.
  kernels::AdamReport report() const;

  // Number of calls of step(), skipped ones included. Loading a checkpoint sets it and writes the
  // moments.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  const Tensor& first_moment() const { return first_; }
  const Tensor& second_moment() const { return second_; }

 private:
  nn::Parameters& parameters_;
  AdamOptions options_;
  std::int64_t steps_ = 0;
  Tensor first_, second_;  // moments, of the weights' type and shape
  Tensor numbers_;         // an AdamSettings in device memory
  Tensor report_;          // an AdamReport in device memory
  Tensor squared_norm_;    // f64 [1], of the gradients
};

}  // namespace nunchi
