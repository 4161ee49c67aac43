#include "nunchi/benchmark/train.h"

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/benchmark/random_sentences.h"
#include "nunchi/models/check_device.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/optimizer.h"

namespace nunchi::benchmark {
namespace {

// Sets the context's profile until the end of the scope.
class ProfileScope {
 public:
  ProfileScope(ContextBase& context, Profile* profile) : context_(context) {
    context.set_profile(profile);
  }
  ~ProfileScope() { context_.set_profile(nullptr); }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  ContextBase& context_;
};

double total_flops(const Profile& profile) {
  double flops = 0;
  for (const auto& [name, entry] : profile.entries()) flops += entry.work.flops;
  return flops;
}

// Computes the loss of a fixed batch with the family's default objective.
struct StepLoss {
  std::function<Variable()> total;  // the sum over all labels
  std::int64_t labels = 0;
};

// Masks about 15 % of each text's tokens, at the same positions in all texts.
StepLoss masked_batch(ContextBase& context, const Model& model, const TrainBenchOptions& options,
                      std::span<const Tokens> texts) {
  constexpr std::size_t kMaskToken = 3, kMaskInterval = 7;
  const MaskedLanguageModel& reader = as_masked_language_model(model);
  std::vector<MaskedText> masked;
  for (const Tokens& text : texts) {
    MaskedText& one = masked.emplace_back(MaskedText{.inputs = text});
    for (std::size_t i = 0; i < text.size(); i += kMaskInterval) {
      one.positions.push_back(static_cast<std::int32_t>(i));
      one.labels.push_back(text[i]);
      one.inputs[i] = kMaskToken;
    }
  }
  const MaskedBatch batch = make_masked_batch(context, masked, options.vocabulary);
  const auto total = [&reader, batch] {
    const Variable rows = gather_rows(reader.hidden(batch.inputs), batch.masked, batch.masked_rows);
    return reader.loss(rows, batch.masked, batch.labels, {}).total;
  };
  return {total, batch.masked.rows};
}

StepLoss random_batch(ContextBase& context, const Model& model, const TrainBenchOptions& options) {
  const auto sentences = [&](std::int64_t length, std::uint32_t stream) {
    return random_sentences({.count = options.sentences,
                             .length = length,
                             .vocabulary = options.vocabulary,
                             .stream = stream});
  };
  const std::int64_t tokens = options.sentences * options.length;
  switch (options.model->objective()) {
    case ObjectiveKind::causal: {
      const LanguageModel& text_model = as_language_model(model);
      const TextBatch batch =
          make_text_batch(context, sentences(options.length + 1, 1), options.vocabulary);
      return {[&text_model, batch] { return text_model.loss(batch, {}).total; }, tokens};
    }
    case ObjectiveKind::masked:
      return masked_batch(context, model, options, sentences(options.length, 1));
    default: {
      const TranslationModel& translation = as_translation_model(model);
      const PairBatch batch = make_pair_batch(
          make_token_batch(context, sentences(options.length, 1), options.vocabulary),
          sentences(options.length - 1, 2), options.vocabulary,
          {.tokens = decoder_tokens(kUsualSpecialTokens)});
      return {[&translation, batch] { return translation.loss(batch, {.smoothing = 0.1}).total; },
              tokens};
    }
  }
}

}  // namespace

TrainBenchResult measure_training(ContextBase& context, const TrainBenchOptions& options,
                                  const std::function<void(const TrainBenchStep&)>& progress) {
  constexpr std::int64_t kMaxTokens = 1 << 24;
  if (options.sentences > kMaxTokens / options.length) {
    throw UsageError("a batch of " + std::to_string(options.sentences) + " sentences of " +
                     std::to_string(options.length) + " tokens is too large.");
  }
  if (options.length > options.model->max_length()) {
    throw UsageError("the model has " + std::to_string(options.model->max_length()) +
                     " positions, too few for sentences of " + std::to_string(options.length) +
                     " tokens.");
  }
  const std::unique_ptr<Model> owned_model =
      options.model->make({options.vocabulary, options.vocabulary});
  Model& model = *owned_model;
  check_device(model, context.device(), "the measured model");
  const StepLoss step_loss = random_batch(context, model, options);
  model.parameters().allocate(context, {.gradients = true});
  model.parameters().initialize(1);
  AdamOptimizer optimizer(model.parameters(), {.max_norm = 1});
  const auto labels = static_cast<double>(step_loss.labels);

  TrainBenchResult result{.parameters = model.parameters().count(),
                          .target_tokens = options.sentences * options.length};
  std::vector<double> times;
  double timed_seconds = 0;
  for (int step = 1 - options.warmup; step <= options.steps; ++step) {
    if (step > 1 && options.seconds > 0 && timed_seconds >= options.seconds) break;
    // The first step counts the work, which is the same in all steps.
    const bool counting = step == 1 - options.warmup;
    const ProfileScope profile_scope(context,
                                     counting || options.profile ? &result.profile : nullptr);
    const double begin = seconds_now();
    context.set_random_key({.seed = 1, .step = static_cast<std::uint64_t>(step + options.warmup)});
    Tensor total;
    {
      const ModeScope scope(context, Mode::training);
      Tape tape(context);
      const Variable loss_sum = step_loss.total();
      tape.backward(loss_sum);
      total = loss_sum.value();
    }
    optimizer.step({.learning_rate = 1e-4, .tokens = labels, .losses = total});
    const double loss = to_host<double>(total)[0] / labels;
    const double seconds = seconds_now() - begin;
    if (counting) result.flops_per_step = total_flops(result.profile);
    if (counting) result.first_loss = loss;
    if (step < 1) result.profile.clear();
    if (step >= 1) {
      times.push_back(seconds);
      timed_seconds += seconds;
    }
    result.last_loss = loss;
    progress({.step = step, .seconds = seconds, .timed_seconds = timed_seconds, .loss = loss});
  }
  result.steps = static_cast<int>(times.size());
  result.median_seconds_per_step = median(times);
  result.mean_seconds_per_step =
      times.empty() ? 0 : timed_seconds / static_cast<double>(times.size());
  result.arena_mib = static_cast<double>(context.arena().peak()) / (1 << 20);
  return result;
}

}  // namespace nunchi::benchmark
