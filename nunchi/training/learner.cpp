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
  LearnedStep result;
  std::int32_t sentence = 0;
  for (const HostBatch& batch : batches) {
    Tape tape(context);
    const Variable loss = objective_.loss(batch, sentence);
    tape.backward(loss);
    result.loss += to_host<double>(loss.value())[0];
    result.tokens += batch.target_tokens;
    sentence += static_cast<std::int32_t>(batch.pairs.size());
  }
  if (std::isfinite(result.loss)) {
    optimizer_.step({.learning_rate = learning_rate, .tokens = static_cast<double>(result.tokens)});
    result.gradient_norm = optimizer_.gradient_norm();
  } else {
    fill(model_.parameters().gradients(), 0);
    result.gradient_norm = NAN;
  }
  result.finite = std::isfinite(result.gradient_norm);
  // Adam corrects its moments for their number of updates, and this was none.
  if (std::isfinite(result.loss) && !result.finite) optimizer_.set_steps(optimizer_.steps() - 1);
  return result;
}

std::string Learner::first_not_finite(std::span<const HostBatch> batches, const RandomKey& key) {
  ContextBase& context = model_.parameters().weights().context();
  context.set_random(key);
  std::string found = "no operation: only the sum of their gradients is not finite";
  std::int32_t sentence = 0;
  try {
    for (const HostBatch& batch : batches) {
      Tape tape(context, {.check_finite = true});
      tape.backward(objective_.loss(batch, sentence));
      sentence += static_cast<std::int32_t>(batch.pairs.size());
    }
  } catch (const NotFinite& error) {
    found = error.what();
  }
  fill(model_.parameters().gradients(), 0);
  return found;
}

}  // namespace nunchi
