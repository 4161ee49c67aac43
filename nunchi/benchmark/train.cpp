#include "nunchi/benchmark/train.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/benchmark/random_sentences.h"
#include "nunchi/models/transformer.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/optimizer.h"

namespace nunchi::benchmark {
namespace {

// The context's profile for as long as a step lasts, however it ends.
class Measured {
 public:
  Measured(ContextBase& context, Profile* profile) : context_(context) {
    context.set_profile(profile);
  }
  ~Measured() { context_.set_profile(nullptr); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  ContextBase& context_;
};

double total_flops(const Profile& profile) {
  double flops = 0;
  for (const auto& [name, entry] : profile.entries()) flops += entry.work.flops;
  return flops;
}

}  // namespace

TrainBenchResult measure_training(ContextBase& context, const TrainBenchOptions& options,
                                  const std::function<void(const TrainBenchStep&)>& progress) {
  constexpr std::int64_t kMostTokens = 1 << 24;
  if (options.sentences > kMostTokens / options.length) {
    throw UsageError("a batch of " + std::to_string(options.sentences) + " sentences of " +
                     std::to_string(options.length) + " tokens is too large.");
  }
  Transformer model(options.model);
  model.parameters().allocate(context, {.gradients = true});
  model.parameters().initialize(1);
  AdamOptimizer optimizer(model.parameters(), {.max_norm = 1});
  const PairBatch batch =
      make_pair_batch(context,
                      random_sentences({.count = options.sentences,
                                        .length = options.length,
                                        .vocabulary = options.model.source_vocabulary,
                                        .place = 1}),
                      random_sentences({.count = options.sentences,
                                        .length = options.length - 1,
                                        .vocabulary = options.model.target_vocabulary,
                                        .place = 2}),
                      {options.model.source_vocabulary, options.model.target_vocabulary});
  const std::int64_t tokens = batch.target.rows.rows;

  TrainBenchResult result{.parameters = model.parameters().count(), .target_tokens = tokens};
  std::vector<double> times;
  double spent = 0;
  for (int step = 1 - options.warmup; step <= options.steps; ++step) {
    if (step > 1 && options.seconds > 0 && spent >= options.seconds) break;
    // The first step counts the work, which is the same in all.
    const bool counting = step == 1 - options.warmup;
    const Measured measured(context, counting || options.profile ? &result.profile : nullptr);
    const double begin = seconds_now();
    context.set_random({.seed = 1, .step = static_cast<std::uint64_t>(step + options.warmup)});
    Tensor total;
    {
      Tape tape(context);
      const VocabularyLoss found = model.loss(batch, {.smoothing = 0.1});
      tape.backward(found.total);
      total = found.total.value();
    }
    optimizer.step({.learning_rate = 1e-4, .tokens = static_cast<double>(tokens), .losses = total});
    const double loss = to_host<double>(total)[0] / static_cast<double>(tokens);
    const double seconds = seconds_now() - begin;
    if (counting) result.flops_per_step = total_flops(result.profile);
    if (counting) result.first_loss = loss;
    if (step < 1) result.profile.clear();
    if (step >= 1) {
      times.push_back(seconds);
      spent += seconds;
    }
    result.last_loss = loss;
    progress({.step = step, .seconds = seconds, .spent = spent, .loss = loss});
  }
  result.steps = static_cast<int>(times.size());
  result.seconds_per_step = median(times);
  result.mean_seconds = times.empty() ? 0 : spent / static_cast<double>(times.size());
  result.arena_mib = static_cast<double>(context.arena().peak()) / (1 << 20);
  return result;
}

}  // namespace nunchi::benchmark
