// Adam and AdamW over a model's flat buffers, with clipping by the global norm.
#pragma once

#include "nunchi/kernels/optimizer.h"
#include "nunchi/nn/parameters.h"

namespace nunchi {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;  // decoupled (AdamW), of matrices only; 0: Adam
  double max_norm = 0;      // clipping by the global norm; 0: none
};

class AdamOptimizer {
 public:
  // `parameters` have gradients and outlive this.
  AdamOptimizer(nn::Parameters& parameters, const AdamOptions& options);

  struct Step {
    double learning_rate = 0;
    double tokens = 1;   // target tokens that the gradients are sums over
    Tensor losses = {};  // f64 [any], of the step's batches; may be undefined
  };
  // Updates the weights and clears the gradients. If a gradient or a loss is NaN or infinite, the
  // weights stay unchanged, and report() says so.
  void step(const Step& step);
  // Of the last step; waits for it.
  kernels::AdamReport report() const;

  // Steps taken, including those that changed nothing. Loading a checkpoint sets them and writes
  // the moments.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  const Tensor& first_moment() const { return first_; }
  const Tensor& second_moment() const { return second_; }

 private:
  nn::Parameters& parameters_;
  AdamOptions options_;
  std::int64_t steps_ = 0;
  Tensor first_, second_;  // like the weights
  Tensor numbers_;         // an AdamNumbers in device memory
  Tensor report_;          // an AdamReport
  Tensor squared_norm_;    // f64 [1]
};

}  // namespace nunchi
