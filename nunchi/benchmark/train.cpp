#include "nunchi/benchmark/train.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/benchmark/random_sentences.h"
#include "nunchi/models/check_device.h"
#include "nunchi/models/sequence_model.h"
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

using StepLoss = std::function<VocabularyLoss()>;

// The loss of a batch that is made once, as the model's kind of training has it.
StepLoss random_batch(ContextBase& context, const Model& model, const TrainBenchOptions& options) {
  const auto sentences = [&](std::int64_t length, std::uint32_t place) {
    return random_sentences({.count = options.sentences,
                             .length = length,
                             .vocabulary = options.vocabulary,
                             .place = place});
  };
  if (options.model->objective() == ObjectiveKind::causal) {
    const LanguageModel& text_model = as_language_model(model);
    const TextBatch batch =
        make_text_batch(context, sentences(options.length + 1, 1), options.vocabulary);
    return [&text_model, batch] { return text_model.loss(batch, {}); };
  }
  const TranslationModel& translation = as_translation_model(model);
  const PairBatch batch =
      make_pair_batch(context, sentences(options.length, 1), sentences(options.length - 1, 2),
                      {options.vocabulary, options.vocabulary});
  return [&translation, batch] { return translation.loss(batch, {.smoothing = 0.1}); };
}

}  // namespace

TrainBenchResult measure_training(ContextBase& context, const TrainBenchOptions& options,
                                  const std::function<void(const TrainBenchStep&)>& progress) {
  constexpr std::int64_t kMostTokens = 1 << 24;
  if (options.sentences > kMostTokens / options.length) {
    throw UsageError("a batch of " + std::to_string(options.sentences) + " sentences of " +
                     std::to_string(options.length) + " tokens is too large.");
  }
  const std::unique_ptr<Model> made = options.model->make({options.vocabulary, options.vocabulary});
  Model& model = *made;
  check_device(model, context.device(), "the measured model");
  const StepLoss step_loss = random_batch(context, model, options);
  model.parameters().allocate(context, {.gradients = true});
  model.parameters().initialize(1);
  AdamOptimizer optimizer(model.parameters(), {.max_norm = 1});
  const std::int64_t tokens = options.sentences * options.length;

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
      const VocabularyLoss found = step_loss();
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
