#include "nunchi/benchmark/train.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/models/transformer.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/optimizer.h"

namespace nunchi::benchmark {
namespace {

// Sentences of random tokens past the special ones.
std::vector<Tokens> random_sentences(std::int64_t count, std::int64_t length,
                                     std::int64_t vocabulary, std::uint32_t place) {
  constexpr std::int64_t kSpecial = 4;
  std::vector<Tokens> sentences(static_cast<std::size_t>(count));
  const philox::Key key = philox::key_of({.seed = 1});
  for (std::size_t b = 0; b < sentences.size(); ++b) {
    for (std::int64_t i = 0; i < length; ++i) {
      const philox::Words words = philox::bits(
          {static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(b), place}, key);
      const std::int64_t range = std::max<std::int64_t>(1, vocabulary - kSpecial);
      sentences[b].push_back(
          static_cast<std::int32_t>(std::min(kSpecial, vocabulary - 1) + words[0] % range));
    }
  }
  return sentences;
}

// The context's profile for as long as a step lasts, however it ends.
class Measured {
 public:
  Measured(CpuContext& context, Profile* profile) : context_(context) {
    context.set_profile(profile);
  }
  ~Measured() { context_.set_profile(nullptr); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  CpuContext& context_;
};

double total_flops(const Profile& profile) {
  double flops = 0;
  for (const auto& [name, entry] : profile.entries()) flops += entry.work.flops;
  return flops;
}

}  // namespace

TrainBenchResult measure_training(CpuContext& context, const TrainBenchOptions& options,
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
  const PairBatch batch = make_pair_batch(
      context,
      random_sentences(options.sentences, options.length, options.model.source_vocabulary, 1),
      random_sentences(options.sentences, options.length - 1, options.model.target_vocabulary, 2),
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
    double loss = 0;
    {
      Tape tape(context);
      const VocabularyLoss found = model.loss(batch, {.smoothing = 0.1});
      tape.backward(found.total);
      loss = to_host<double>(found.total.value())[0] / static_cast<double>(tokens);
    }
    optimizer.step({.learning_rate = 1e-4, .tokens = static_cast<double>(tokens)});
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
