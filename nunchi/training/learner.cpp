#include "nunchi/training/learner.h"

#include <cmath>

#include "nunchi/autograd/tape.h"
#include "nunchi/ops/tensors.h"

namespace nunchi {

Learner::Learner(Model& model, const Objective& objective, const AdamOptions& options)
    : model_(model), objective_(objective), optimizer_(model.parameters(), options) {}

LearnedStep Learner::step(std::span<const HostBatch> batches, const RandomKey& key,
                          double learning_rate) {
  ContextBase& context = model_.parameters().weights().context();
  context.set_random(key);
  const ModeScope scope(context, Mode::training);
  LearnedStep result;
  std::int32_t sentence = 0;
  const std::int64_t count = static_cast<std::int64_t>(batches.size());
  const Tensor losses = Tensor::empty(context, DType::f64, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    const HostBatch& batch = batches[static_cast<std::size_t>(i)];
    Tape tape(context);
    const ObjectiveLoss loss = objective_.loss(batch, sentence);
    tape.backward(loss.total);
    convert(loss.total.value(), losses.part(i, {1}));
    result.tokens += loss.tokens;
    result.read += loss.read > 0 ? loss.read : loss.tokens;
    sentence += static_cast<std::int32_t>(batch.pairs.size());
  }
  optimizer_.step({.learning_rate = learning_rate,
                   .tokens = static_cast<double>(result.tokens),
                   .losses = losses});
  // Only now does the host wait for the device.
  const kernels::AdamReport report = optimizer_.report();
  for (const double loss : to_host<double>(losses)) result.loss += loss;
  result.finite = report.scale != 0;
  result.gradient_norm = std::isfinite(result.loss) ? report.gradient_norm : NAN;
  // Adam corrects its moments for their number of updates, and this was none.
  if (!result.finite) optimizer_.set_steps(optimizer_.steps() - 1);
  return result;
}

std::string Learner::first_not_finite(std::span<const HostBatch> batches, const RandomKey& key) {
  ContextBase& context = model_.parameters().weights().context();
  context.set_random(key);
  const ModeScope scope(context, Mode::training);
  std::string found = "each number that was made is finite, their sums are not";
  std::int32_t sentence = 0;
  try {
    for (const HostBatch& batch : batches) {
      Tape tape(context, {.check_finite = true});
      tape.backward(objective_.loss(batch, sentence).total);
      sentence += static_cast<std::int32_t>(batch.pairs.size());
    }
  } catch (const NotFinite& error) {
    found = error.what();
  }
  fill(model_.parameters().gradients(), 0);
  return found;
}

}  // namespace nunchi
