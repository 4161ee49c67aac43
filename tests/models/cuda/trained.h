// A few training steps, on either device.
#pragma once

#include <functional>

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/vocabulary_loss.h"
#include "nunchi/training/optimizer.h"
#include "tests/kernels/cuda/compare.h"

namespace nunchi::testing {

struct Trained {
  std::vector<double> losses;  // per token
  std::vector<float> weights;
};

// Takes steps of Adam with a learning rate that grows as in a warm-up: a high rate from the start
// would soon magnify rounding errors.
inline Trained train(nn::Parameters& parameters, int steps, double tokens,
                     const std::function<VocabularyLoss()>& loss_of) {
  ContextBase& context = parameters.weights().context();
  AdamOptimizer optimizer(parameters, {.max_norm = 1});
  Trained run;
  for (int step = 0; step < steps; ++step) {
    context.set_random_key({.seed = 3, .step = static_cast<std::uint64_t>(step)});
    const ModeScope scope(context, Mode::training);
    Tape tape(context);
    const VocabularyLoss loss = loss_of();
    tape.backward(loss.total);
    optimizer.step(
        {.learning_rate = 5e-6 * (step + 1), .tokens = tokens, .losses = loss.total.value()});
    run.losses.push_back(to_host<double>(loss.total.value())[0] / tokens);
  }
  run.weights = to_host<float>(parameters.weights());
  return run;
}

// Expects the same losses on the CPU and on the GPU in f32 and bf16. Returns the CPU's run.
inline Trained expect_learned_as_on_cpu(const std::function<Trained(ContextBase&)>& train_on) {
  CpuContext cpu({.threads = 2});
  CudaContext f32({.precision = Precision::f32}), bf16;
  const Trained expected = train_on(cpu), exact = train_on(f32), rounded = train_on(bf16);
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(exact.losses[i], expected.losses[i], 2e-4) << "step " << i;
    EXPECT_NEAR(rounded.losses[i], expected.losses[i], 0.1) << "step " << i;
  }
  return expected;
}

}  // namespace nunchi::testing
