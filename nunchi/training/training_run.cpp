#include "nunchi/training/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/base/process.h"
#include "nunchi/base/write_error.h"
#include "nunchi/decoding/generation_config.h"
#include "nunchi/models/check_device.h"
#include "nunchi/training/objectives/classification.h"
#include "nunchi/training/objectives/label_tokenizer.h"
#include "nunchi/training/start_from.h"

namespace nunchi {
namespace {

constexpr const char* kModel = "the config's model";

// A model that cannot be held is refused for its size, not for the first allocation that fails.
void check_memory(const TrainConfig& config) {
  // Characters are as many as there are; the others are what is asked for.
  const bool known = config.learns_tokenizer() && config.tokenizer.has_pieces();
  const std::int64_t tokens = known ? config.tokenizer.options.vocabulary : 4;
  const std::int64_t count = config.model->make({tokens, tokens})->parameters().count();
  const double needed = static_cast<double>(count) * 4 * sizeof(float) / (1 << 20);
  const double there = memory_mib();
  if (there == 0 || needed <= there) return;
  throw Error(
      fmt::format("a model of {} parameters needs {:.0f} GiB with its gradients and moments, and "
                  "this machine has {:.0f}. See 'model.width' and the other sizes.",
                  grouped(count), needed / 1024, there / 1024));
}

// Before hours go into tokenising for it.
const TrainConfig& checked_for(const ContextBase& context, const TrainConfig& config) {
  check_device(*config.model, context.device(), kModel);
  if (context.device() == Device::cpu) check_memory(config);
  if (const auto validation = config.data.validation_part()) {
    PairReader reader(*validation);
    for (RawPair pair; reader.next(pair);) {
    }
  }
  return config;
}

ModelInputs inputs_of(const TrainConfig& config, const Tokenizers& tokenizers) {
  const std::int64_t features = feature_width(config.data.train_parts().front());
  return {.source_vocabulary = features > 0 ? 0 : tokenizers.source().vocabulary(),
          .target_vocabulary = tokenizers.target().vocabulary(),
          .source_features = features};
}

std::unique_ptr<Model> model_for(const TrainConfig& config, const Tokenizers& tokenizers,
                                 ContextBase& context) {
  std::unique_ptr<Model> model = config.model->make(inputs_of(config, tokenizers));
  check_device(*model, context.device(), kModel);
  model->parameters().allocate(context, {.gradients = true});
  model->parameters().initialize(config.seed);
  return model;
}

// The model's options with the labels of the training data, where it is to learn them.
ModelConfig with_labels(const TrainConfig& config) {
  if (!config.has_labels()) return config.model;
  return config.model->with_labels(labels_in(config.data.train_parts()));
}

void write_config(const TrainConfig& config, const std::filesystem::path& folder) {
  const std::string text = to_yaml(config);
  AtomicFile file(folder / "config.yaml");
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

SearchOptions search_options(const GenerationConfig& config) {
  SearchOptions options;
  options.beam_size = static_cast<int>(config.beam_size);
  options.normalize = config.normalize;
  options.max_length = config.max_length;
  return options;
}

}  // namespace

void check_inputs_stay(const TrainConfig& config, const RunFolder& folder) {
  const auto check = [&](const std::filesystem::path& file, const char* key) {
    if (!file.empty()) folder.check_stays(file, key);
  };
  check(config.tokenizer.source, "tokenizer.source");
  check(config.tokenizer.target, "tokenizer.target");
  if (!config.initialize_from.empty()) {
    check(config.initialize_from / "model.safetensors", "initialize_from");
  }
  for (const CorpusPart& part : config.data.train_parts()) {
    for (const std::filesystem::path& file : files_of(part)) check(file, "data.train");
  }
}

TrainingRun::TrainingRun(ContextBase& context, const TrainConfig& config,
                         const TrainingRunOptions& options)
    : context_(context),
      communicator_(options.communicator != nullptr ? *options.communicator : single_process_),
      config_(checked_for(context, config)),
      validation_part_(config.data.validation_part()),
      tokenizers_(options.checkpoint.empty() ? make_tokenizers(config, options)
                                             : load_tokenizers(options.checkpoint)) {
  // What does not fit together is said before anything is tokenised.
  config_.model = with_labels(config);
  model_ = model_for(config_, tokenizers_, context);
  if (!options.checkpoint.empty()) {
    check_resumed(options.checkpoint, config_, *model_);
  } else if (!config.initialize_from.empty()) {
    const std::string note = start_from(config.initialize_from, tokenizers_, *model_);
    if (options.note && !note.empty()) options.note(note);
  }
  objective_ =
      info_of(config.training.objective).make({*model_, context, tokenizers_, config_.training});
  if (config.has_labels() && validation_part_) check_labels(*validation_part_, labels_of(*model_));

  std::optional<LabelTokenizer> labels;
  if (config.has_labels()) labels.emplace(labels_of(*model_));
  const PairTokenizers tokenizers{tokenizers_.source(), labels ? *labels : tokenizers_.target()};
  const PrepareOptions prepare{.limits = config.data.limits,
                               .cut = config.data.cut,
                               .cache = options.cache,
                               .threads = options.threads,
                               .progress = [&](const PrepareProgress& progress) {
                                 check_stop(options.stop);
                                 if (options.progress) options.progress(progress);
                               }};
  const std::vector<CorpusPart> parts = config.data.train_parts();
  pairs_ = prepare_pairs(parts, tokenizers, prepare);
  if (validation_part_) validation_pairs_ = prepare_pairs(*validation_part_, tokenizers, prepare);

  std::vector<WeightedPairs> weighted;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    weighted.push_back({&pairs_[i], parts[i].weight});
  }
  order_ = std::make_unique<BatchOrder>(
      std::move(weighted), BatchOptions{.batch_tokens = config.training.batch_tokens,
                                        .source_tokens = source_tokens(config.training),
                                        .seed = config.seed,
                                        .by = config.training.batch_by,
                                        .text_window = config.data.text_window()});
  if (order_->epoch_pairs() == 0) {
    std::string reports;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      reports += "; " + to_text(pairs_[i].report(), kind_of_line(parts[i]));
    }
    throw Error(names_of(parts) + ": there is nothing to learn from (" + reports.substr(2) + ").");
  }
  check_stop(options.stop);
  if (validation_part_) {
    validator_ = std::make_unique<Validator>(
        ValidatorParts{*model_, *objective_, tokenizers_, *validation_pairs_, *validation_part_},
        config);
  }
}

TrainingEnd TrainingRun::train(RunFolder* folder, TrainerHooks hooks) {
  if (validator_) {
    hooks.validate = [this, stop = hooks.stop] { return (*validator_)(stop); };
  }
  const auto companions = [this](const std::filesystem::path& into) {
    save_tokenizers(tokenizers_, into);
    save_generation_config(search_options(config_.generation), tokenizers_.generation_tokens(),
                           into);
    write_config(config_, into);
  };
  const std::atomic<bool>* stop = hooks.stop;
  Trainer trainer({*model_, *objective_, *order_, communicator_, folder, companions}, config_,
                  std::move(hooks));
  check_stop(stop);
  try {
    return trainer.run();
  } catch (const NoRoom& error) {
    const std::vector<std::int64_t> steps = checkpoint_steps(folder->checkpoints());
    const std::string then = steps.empty() ? std::string("begin again")
                                           : fmt::format("--resume from step {}", steps.back());
    throw NoRoom(fmt::format("{}. Make room and {}.", error.what(), then));
  }
}

StepTimes TrainingRun::measure(const MeasureOptions& options, Profile* profile) {
  using Clock = std::chrono::steady_clock;
  Learner learner(*model_, *objective_,
                  {.adam = config_.training.optimizer.adam, .sum = config_.training.gradient_sum},
                  communicator_);
  BatchQueue queue(*order_);
  std::int64_t tokens = 0, epoch_batches = 0;
  Clock::time_point began;
  StepTimes times;
  for (int step = 1 - options.warmup; step <= options.steps; ++step) {
    if (step == 1) {
      began = Clock::now();
      context_.set_profile(profile);
    }
    std::vector<HostBatch> batches;
    for (std::int64_t i = 0; i < config_.training.accumulate; ++i) batches.push_back(queue.next());
    epoch_batches = batches.front().epoch_batches;
    const RandomKey key{.seed = config_.seed,
                        .step = static_cast<std::uint64_t>(step + options.warmup)};
    const LearnedStep learned = learner.step(batches, key, options.learning_rate);
    times.last_loss = learned.loss / static_cast<double>(learned.tokens);
    if (step == 1 - options.warmup) times.first_loss = times.last_loss;
    if (step > 0) tokens += learned.read;
  }
  context_.set_profile(nullptr);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const TrainingOptions& limits = config_.training;
  times.seconds_per_step = seconds / options.steps;
  times.target_tokens_per_second = static_cast<double>(tokens) / seconds;
  times.steps_per_epoch = (epoch_batches + limits.accumulate - 1) / limits.accumulate;
  times.total_steps = total_steps(limits, epoch_batches);
  return times;
}

std::vector<PairReport> TrainingRun::reports() const {
  std::vector<PairReport> reports;
  for (const PairStore& pairs : pairs_) reports.push_back(pairs.report());
  return reports;
}

std::optional<PairReport> TrainingRun::validation_report() const {
  return validation_pairs_ ? std::optional(validation_pairs_->report()) : std::nullopt;
}

}  // namespace nunchi
