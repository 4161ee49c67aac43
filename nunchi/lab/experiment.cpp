#include "nunchi/lab/experiment.h"

#include <algorithm>

#include "nunchi/autograd/tape.h"
#include "nunchi/base/error.h"
#include "nunchi/decoding/searcher.h"
#include "nunchi/models/family.h"
#include "nunchi/models/sequence_model.h"
#include "nunchi/ops/decode/top_tokens.h"
#include "nunchi/ops/gather_rows.h"
#include "nunchi/ops/tensors.h"
#include "nunchi/training/learner.h"
#include "nunchi/training/objectives/causal.h"
#include "nunchi/training/objectives/translation.h"
#include "nunchi/training/schedule.h"

namespace nunchi::lab {
namespace {

constexpr std::uint32_t kTrainingStream = 100, kTestStream = 200;
constexpr std::size_t kEvaluationBatch = 64;

DecoderTokens decoder() { return decoder_tokens(kUsualSpecialTokens); }

// A fill example as a batch holds it: the text is the target; the source lists positions and labels
// in turn.
Tokens labelled_positions(const Example& example) {
  Tokens all;
  for (std::size_t i = 0; i < example.positions.size(); ++i) {
    all.push_back(example.positions[i]);
    all.push_back(example.labels[i]);
  }
  return all;
}

HostBatch batch_of(std::span<const Example> examples, Task task) {
  HostBatch batch;
  std::vector<Tokens> sources;
  for (const Example& example : examples) {
    Tokens source = task == Task::fill ? labelled_positions(example) : example.source;
    if (task == Task::translate) source.push_back(kUsualSpecialTokens.end);
    sources.push_back(std::move(source));
    batch.targets.push_back(example.target);
    batch.pairs.push_back(std::ssize(batch.pairs));
    batch.target_tokens += std::ssize(example.target) + 1;
  }
  batch.sources = std::move(sources);
  return batch;
}

// The labels of a batch of `fill` examples.
class FillObjective final : public Objective {
 public:
  FillObjective(const MaskedLanguageModel& model, ContextBase& context)
      : model_(model), context_(context) {}

  ObjectiveLoss loss(const HostBatch& batch, std::int32_t first_sentence) const override {
    std::vector<MaskedText> texts;
    const std::vector<Tokens>& labels = tokens_of(batch.sources);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      MaskedText& text = texts.emplace_back(MaskedText{.inputs = batch.targets[i]});
      for (std::size_t k = 0; k + 1 < labels[i].size(); k += 2) {
        text.positions.push_back(labels[i][k]);
        text.labels.push_back(labels[i][k + 1]);
      }
    }
    const MaskedBatch masked =
        make_masked_batch(context_, texts, model_.vocabulary(), first_sentence);
    const Variable rows =
        gather_rows(model_.hidden(masked.inputs), masked.masked, masked.masked_rows);
    return {model_.loss(rows, masked.masked, masked.labels, {}).total, masked.masked.rows};
  }

 private:
  const MaskedLanguageModel& model_;
  ContextBase& context_;
};

std::unique_ptr<Objective> make_objective(const Model& model, ContextBase& context, Task task) {
  switch (task) {
    case Task::translate:
      return std::make_unique<TranslationObjective>(as_translation_model(model), context, decoder(),
                                                    0);
    case Task::text:
      return std::make_unique<CausalObjective>(as_language_model(model), context, 0);
    case Task::fill:
      return std::make_unique<FillObjective>(as_masked_language_model(model), context);
  }
  throw Error("an experiment has no such task (internal error).");
}

// Calls f with groups of examples that fit into one batch.
template <class F>
void in_batches(std::span<const Example> examples, const F& f) {
  for (std::size_t i = 0; i < examples.size(); i += kEvaluationBatch) {
    f(examples.subspan(i, std::min(kEvaluationBatch, examples.size() - i)));
  }
}

}  // namespace

std::vector<Example> make_examples(const Options& options, const ExampleMaker& make,
                                   std::int64_t count) {
  Draws draws(options.seed, kTestStream);
  std::vector<Example> examples;
  for (std::int64_t i = 0; i < count; ++i) examples.push_back(make(draws));
  return examples;
}

Experiment::Experiment(const Options& options, const ModelConfig& config, Task task)
    : options_(options), task_(task), model_(config->make()) {
  model_->parameters().allocate(options.context, {.gradients = true});
  model_->parameters().initialize(options.seed);
  nunchi::fill(model_->parameters().gradients(), 0);
  objective_ = make_objective(*model_, options.context, task);
}

Experiment::~Experiment() = default;

std::vector<double> Experiment::train(const TrainingPlan& plan, const ExampleMaker& make,
                                      const ProgressSpan& progress) {
  const std::int64_t steps = options_.scaled(plan.steps);
  const Schedule schedule{.kind = ScheduleKind::cosine,
                          .peak = plan.peak,
                          .warmup = steps / 10,
                          .total_steps = steps + 1};
  SingleProcess alone;
  Learner learner(*model_, *objective_, {.adam = {.max_norm = 1}}, alone);
  Draws draws(options_.seed, kTrainingStream);
  std::vector<double> losses;
  for (std::int64_t step = 1; step <= steps; ++step) {
    std::vector<Example> examples;
    for (std::int64_t i = 0; i < plan.batch; ++i) examples.push_back(make(draws));
    const HostBatch batch = batch_of(examples, task_);
    const StepReport report = learner.step(
        std::span(&batch, 1), {.seed = options_.seed, .step = static_cast<std::uint64_t>(step)},
        learning_rate(schedule, step));
    losses.push_back(report.loss / static_cast<double>(report.target_tokens));
    const double done = static_cast<double>(step) / static_cast<double>(steps);
    options_.report({progress.part, progress.begin + done * (progress.end - progress.begin)});
    if (plan.after_step) plan.after_step(step);
    if (plan.enough && plan.enough()) break;
  }
  return losses;
}

double Experiment::loss(std::span<const Example> examples) const {
  double total = 0, tokens = 0;
  in_batches(examples, [&](std::span<const Example> part) {
    const ObjectiveLoss loss = objective_->loss(batch_of(part, task_), 0);
    total += to_host_f64(loss.total.value())[0];
    tokens += static_cast<double>(loss.target_tokens);
  });
  return total / tokens;
}

std::vector<Hypotheses> Experiment::search(std::span<const Example> examples,
                                           const SearchOptions& search, std::size_t prefix) const {
  std::vector<Hypotheses> found;
  in_batches(examples, [&](std::span<const Example> part) {
    std::vector<Hypotheses> some;
    if (task_ == Task::translate) {
      const TranslationModel& model = as_translation_model(*model_);
      const Source source =
          make_source(options_.context, batch_of(part, task_).sources, model.input_sizes());
      some = nunchi::search(model, {.source = source, .tokens = decoder()}, search);
    } else {
      std::vector<Tokens> prefixes;
      for (const Example& example : part) {
        prefixes.emplace_back(example.target.begin(),
                              example.target.begin() + static_cast<std::ptrdiff_t>(prefix));
      }
      some = nunchi::search(as_language_model(*model_), options_.context,
                            {.prefixes = prefixes, .tokens = {.end = kUsualSpecialTokens.end}},
                            search);
    }
    found.insert(found.end(), some.begin(), some.end());
  });
  return found;
}

std::vector<Tokens> Experiment::generate(std::span<const Example> examples,
                                         const SearchOptions& options, std::size_t prefix) const {
  std::vector<Tokens> found;
  for (const Hypotheses& best : search(examples, options, prefix)) {
    const Tokens& tokens = best[0].tokens;
    const auto skipped = static_cast<std::ptrdiff_t>(std::min(prefix, tokens.size()));
    found.emplace_back(tokens.begin() + skipped, tokens.end());
  }
  return found;
}

std::vector<Tokens> Experiment::fill(std::span<const Example> examples) const {
  const MaskedLanguageModel& model = as_masked_language_model(*model_);
  std::vector<Tokens> found;
  in_batches(examples, [&](std::span<const Example> part) {
    std::vector<MaskedText> texts;
    for (const Example& example : part) {
      texts.push_back({example.target, example.positions, example.labels});
    }
    const MaskedBatch batch = make_masked_batch(options_.context, texts, model.vocabulary());
    const Variable rows = gather_rows(model.hidden(batch.inputs), batch.masked, batch.masked_rows);
    const Tensor scores = model.scores(rows, batch.masked).rows(0, batch.masked.rows);
    const std::vector<std::int32_t> best = to_host<std::int32_t>(top_tokens(scores, 1).ids);
    std::size_t next = 0;
    for (const Example& example : part) {
      const auto begin = best.begin() + static_cast<std::ptrdiff_t>(next);
      found.emplace_back(begin, begin + std::ssize(example.positions));
      next += example.positions.size();
    }
  });
  return found;
}

Trace Experiment::trace(std::span<const Example> examples, std::vector<Tap> taps) const {
  Trace trace(std::move(taps));
  const TraceScope scope(options_.context, trace);
  objective_->loss(batch_of(examples, task_), 0);
  return trace;
}

void Experiment::compute_gradients(std::span<const Example> examples) {
  nunchi::fill(model_->parameters().gradients(), 0);
  const ModeScope scope(options_.context, Mode::training);
  Tape tape(options_.context);
  tape.backward(objective_->loss(batch_of(examples, task_), 0).total);
}

double exact_share(std::span<const Example> examples, std::span<const Tokens> found) {
  double right = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) right += examples[i].target == found[i] ? 1 : 0;
  return right / static_cast<double>(examples.size());
}

double token_share(std::span<const Example> examples, std::span<const Tokens> found) {
  double right = 0, all = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const Tokens& target = examples[i].target;
    for (std::size_t k = 0; k < target.size(); ++k) {
      right += k < found[i].size() && found[i][k] == target[k] ? 1 : 0;
    }
    all += static_cast<double>(target.size());
  }
  return right / all;
}

double label_share(std::span<const Example> examples, std::span<const Tokens> found) {
  double right = 0, all = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    for (std::size_t k = 0; k < examples[i].labels.size(); ++k) {
      right += found[i][k] == examples[i].labels[k] ? 1 : 0;
    }
    all += static_cast<double>(examples[i].labels.size());
  }
  return right / all;
}

Weights weights_of(const TapRecord& record, std::size_t sentence, int head) {
  Weights weights{.queries = record.lengths.at(sentence), .keys = record.key_lengths.at(sentence)};
  const auto cells = static_cast<std::size_t>(weights.queries * weights.keys);
  weights.values.assign(cells, 0);
  for (int h = 0; h < record.heads; ++h) {
    if (head != kMeanOfHeads && h != head) continue;
    const std::size_t begin =
        static_cast<std::size_t>(record.offsets[sentence]) + static_cast<std::size_t>(h) * cells;
    const double share = head == kMeanOfHeads ? 1.0 / record.heads : 1.0;
    for (std::size_t i = 0; i < cells; ++i) {
      weights.values[i] += share * static_cast<double>(record.values[begin + i]);
    }
  }
  return weights;
}

}  // namespace nunchi::lab
