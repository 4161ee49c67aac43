#include "nunchi/training/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "nunchi/base/atomic_file.h"
#include "nunchi/base/error.h"
#include "nunchi/base/grouped.h"
#include "nunchi/base/interrupted.h"
#include "nunchi/base/write_error.h"
#include "nunchi/data/split_batch.h"
#include "nunchi/decoding/generation_config.h"
#include "nunchi/device/memory_size.h"
#include "nunchi/inference/model_folder.h"
#include "nunchi/models/check_device.h"
#include "nunchi/training/batch_search.h"
#include "nunchi/training/objectives/objectives.h"
#include "nunchi/training/run_tokenizers.h"
#include "nunchi/training/start_from.h"

namespace nunchi {
namespace {

constexpr const char* kModel = "the config's model";

// Throws Error for a model that is too large for the device, before an allocation fails.
void check_memory(const Model& model, const ContextBase& context, const TrainingOptions& training) {
  const double needed = training_state_mib(model, context, training);
  const MemorySize memory = device_memory(context);
  const bool gpu = context.device() == Device::cuda;
  const double available = gpu ? memory.available_mib : memory.total_mib;
  if (available == 0 || needed <= available) return;
  throw Error(
      fmt::format("a model of {} parameters needs {:.0f} GiB with its gradients and moments, but "
                  "{} {:.0f} GiB{}. "
                  "Lower 'model.width' or the model's other sizes.",
                  grouped(model.parameters().count()), needed / 1024,
                  gpu ? "the GPU has" : "this machine has", available / 1024, gpu ? " free" : ""));
}

InputSizes input_sizes_of(const TrainConfig& config, const Tokenizers& tokenizers) {
  const std::int64_t features = feature_width(config.data.train_parts().front());
  return {.source_vocabulary = features > 0 ? 0 : tokenizers.source().vocabulary(),
          .target_vocabulary = tokenizers.target().vocabulary(),
          .source_feature_width = features};
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

// Enough for a 1st percentile, and few enough for a slow model.
constexpr std::size_t kMaxTypicalSources = 500;

std::vector<SourceLine> evenly_chosen(std::vector<SourceLine> lines, std::size_t count) {
  if (lines.size() <= count) return lines;
  std::vector<SourceLine> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(lines[i * lines.size() / count]);
  return chosen;
}

}  // namespace

double training_state_mib(const Model& model, const ContextBase& context,
                          const TrainingOptions& training) {
  // Weights, gradients and two moments, all f32.
  std::size_t bytes = 4 * sizeof(float);
  if (context.precision() == Precision::bf16) bytes += sizeof(BFloat16);  // rounded weights
  if (training.ema > 0) bytes += sizeof(float);
  return static_cast<double>(model.parameters().count()) * static_cast<double>(bytes) / (1 << 20);
}

void check_inputs_not_removed(const TrainConfig& config, const RunFolder& folder) {
  const auto check = [&](const std::filesystem::path& file, const char* key) {
    if (!file.empty()) folder.check_not_removed(file, key);
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
      config_(config) {
  nn::Parameters::check_can_train(context);
  check_device(config.model, context.device(), kModel);
  read_validation(options);
  make_tokenizers(options);
  make_model(options);
  prepare_data(options);
  order_batches(options);
  check_stop(options.stop);
  make_validator();
}

void TrainingRun::read_validation(const TrainingRunOptions& options) {
  const std::optional<CorpusPart> part = config_.data.validation_part();
  if (!part) return;
  const bool needs_lines =
      Validator::needs_lines(config_) || info_of(config_.training.objective).targets != nullptr;
  const bool translates =
      config_.training.objective == ObjectiveKind::translation && feature_width(*part) == 0;
  PairReader reader(*part);
  for (RawPair pair; reader.next(pair);) {
    check_stop(options.stop);
    if (translates) typical_sources_.push_back({.text = pair.source});
    if (needs_lines) validation_lines_.push_back(std::move(pair));
  }
  typical_sources_ = evenly_chosen(std::move(typical_sources_), kMaxTypicalSources);
}

void TrainingRun::make_tokenizers(const TrainingRunOptions& options) {
  tokenizers_ = share_tokenizers(communicator_, [&] {
    if (!options.checkpoint.empty()) return load_tokenizers(options.checkpoint);
    return nunchi::make_tokenizers(
        config_, {.note = options.note, .learning = {options.learning, options.stop}});
  });
}

void TrainingRun::make_model(const TrainingRunOptions& options) {
  const ObjectiveInfo& objective = info_of(config_.training.objective);
  if (objective.targets != nullptr) {
    config_.model = objective.targets->configure(config_.model, config_.data.train_parts());
  }
  model_ = config_.model->make(input_sizes_of(config_, *tokenizers_));
  check_device(*model_, context_.device(), kModel);
  check_memory(*model_, context_, config_.training);
  if (objective.targets != nullptr && config_.data.validation) {
    objective.targets->check(*config_.data.validation_part(), validation_lines_, *model_);
  }
  model_->parameters().allocate(context_, {.gradients = true});
  set_weights(options);
  objective_ = objective.make({*model_, context_, *tokenizers_, config_.training});
}

void TrainingRun::set_weights(const TrainingRunOptions& options) {
  nn::Parameters& parameters = model_->parameters();
  parameters.initialize(config_.seed);
  if (communicator_.is_leader() && !options.checkpoint.empty()) {
    // The trainer loads the weights, with the rest of the checkpoint.
    check_resumable(options.checkpoint, config_, model_->config());
  } else if (communicator_.is_leader() && !config_.initialize_from.empty()) {
    const std::string note = start_from(config_.initialize_from, *tokenizers_, *model_);
    if (options.note && !note.empty()) options.note(note);
  }
  communicator_.broadcast(parameters.weights());
  if (communicator_.size() > 1) parameters.changed();
}

void TrainingRun::prepare_data(const TrainingRunOptions& options) {
  const ObjectiveInfo& objective = info_of(config_.training.objective);
  std::unique_ptr<Tokenizer> target_tokenizer;
  if (objective.targets != nullptr) target_tokenizer = objective.targets->tokenizer(*model_);
  const PairTokenizers tokenizers{tokenizers_->source(), target_tokenizer != nullptr
                                                             ? *target_tokenizer
                                                             : tokenizers_->target()};
  const PrepareOptions prepare{.limits = config_.data.limits,
                               .cut = config_.data.cut,
                               .cache = options.cache,
                               .threads = options.threads,
                               .progress = [&](const PrepareProgress& progress) {
                                 check_stop(options.stop);
                                 if (options.progress) options.progress(progress);
                               }};
  // The leader prepares the data first; the other workers then read them from the cache.
  if (!communicator_.is_leader()) communicator_.barrier();
  pairs_ = prepare_pairs(config_.data.train_parts(), tokenizers, prepare);
  if (const std::optional<CorpusPart> part = config_.data.validation_part()) {
    validation_pairs_ = prepare_pairs(*part, tokenizers, prepare);
  }
  if (communicator_.is_leader()) communicator_.barrier();
}

std::unique_ptr<BatchOrder> TrainingRun::make_order(std::int64_t batch_tokens) const {
  std::vector<WeightedPairs> weighted;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    weighted.push_back({&pairs_[i], config_.data.train[i].weight});
  }
  TrainingOptions training = config_.training;
  training.batch_tokens = batch_tokens;
  return std::make_unique<BatchOrder>(std::move(weighted),
                                      BatchOptions{.batch_tokens = batch_tokens,
                                                   .source_tokens = source_tokens(training),
                                                   .seed = config_.seed,
                                                   .by = config_.training.batch_by,
                                                   .text_window = config_.data.text_window()});
}

void TrainingRun::set_batch_tokens(const TrainingRunOptions& options) {
  std::int64_t& batch_tokens = config_.training.batch_tokens;
  if (batch_tokens != kAutomatic) return;
  if (communicator_.is_leader()) {
    const std::filesystem::path saved = options.checkpoint / "config.yaml";
    std::error_code ignored;
    if (!options.checkpoint.empty() && std::filesystem::exists(saved, ignored)) {
      batch_tokens = read_train_config(saved).training.batch_tokens;
    }
    if (batch_tokens == kAutomatic) {
      batch_tokens = find_batch_tokens({*model_, *objective_, config_.training,
                                        [this](std::int64_t tokens) { return make_order(tokens); },
                                        options.stop});
      if (options.note) {
        options.note("training.batch_tokens: auto is " + grouped(batch_tokens));
      }
    }
  }
  batch_tokens = communicator_.from_leader(batch_tokens);
}

void TrainingRun::order_batches(const TrainingRunOptions& options) {
  if (make_order(1)->epoch_pairs() > 0) {
    set_batch_tokens(options);
    order_ = make_order(config_.training.batch_tokens);
    return;
  }
  const std::vector<CorpusPart> parts = config_.data.train_parts();
  std::string reports;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    reports += "; " + to_text(pairs_[i].report(), kind_of_line(parts[i]));
  }
  throw Error(names_of(parts) + ": there is nothing to learn from (" + reports.substr(2) + ").");
}

void TrainingRun::make_validator() {
  if (!validation_pairs_) return;
  validator_ = std::make_unique<Validator>(
      ValidatorParts{*model_, *objective_, *tokenizers_, *validation_pairs_, validation_lines_},
      config_);
  validation_lines_ = {};
}

TrainingEnd TrainingRun::train(RunFolder* folder, TrainerHooks hooks) {
  if (validator_) {
    hooks.validate = [this, stop = hooks.stop] { return (*validator_)(stop); };
    hooks.samples = [this] { return validator_->samples(); };
  }
  const auto write_companions = [this](const std::filesystem::path& into) {
    save_tokenizers(*tokenizers_, into);
    save_generation_config(search_options(config_.generation), tokenizers_->generation_tokens(),
                           into);
    write_config(config_, into);
  };
  const std::atomic<bool>* stop = hooks.stop;
  Trainer trainer({*model_, *objective_, *order_, communicator_, folder, write_companions}, config_,
                  std::move(hooks));
  check_stop(stop);
  try {
    const TrainingEnd end = trainer.run();
    if (end == TrainingEnd::interrupted || folder == nullptr) return end;
    return store_typical_scores(folder->path(), stop) ? end : TrainingEnd::interrupted;
  } catch (const DiskFull& error) {
    const std::vector<std::int64_t> steps = checkpoint_steps(folder->checkpoints());
    const std::string advice = steps.empty() ? std::string("start again")
                                             : fmt::format("--resume from step {}", steps.back());
    throw DiskFull(fmt::format("{}. Free disk space and {}.", error.what(), advice));
  }
}

bool TrainingRun::store_typical_scores(const std::filesystem::path& folder,
                                       const std::atomic<bool>* stop) {
  if (typical_sources_.size() < kMinTypicalScores) return true;
  const ModelFolder trained(context_, folder, as_translation_model);
  Translator translator(
      context_, trained.model(), trained.tokenizers(),
      {.search = trained.search(), .max_source_length = config_.data.limits.max_length});
  std::vector<double> scores;
  constexpr std::size_t kLinesPerCall = 100;
  for (std::size_t first = 0; first < typical_sources_.size(); first += kLinesPerCall) {
    if (stop != nullptr && stop->load()) return false;
    const std::size_t count = std::min(kLinesPerCall, typical_sources_.size() - first);
    const auto lines = std::span<const SourceLine>(typical_sources_).subspan(first, count);
    for (const Translations& found : translator.translate(lines)) {
      const Translation& best = found.front();
      if (best.token_scores.empty()) continue;  // a line without words
      scores.push_back(best.log_probability / static_cast<double>(best.token_scores.size()));
    }
  }
  save_generation_config(trained.search(), trained.tokenizers().generation_tokens(), folder,
                         typical_scores(std::move(scores)));
  return true;
}

LearnerOptions TrainingRun::learner_options() const {
  return {.adam = config_.training.optimizer.adam, .sum = config_.training.gradient_sum};
}

StepTimes TrainingRun::measure(const MeasureOptions& options, Profile* profile) {
  using Clock = std::chrono::steady_clock;
  const TrainingOptions& training = config_.training;
  Learner learner(*model_, *objective_, learner_options(), communicator_);
  BatchQueue queue(*order_);
  std::int64_t tokens = 0, epoch_batches = 0;
  Clock::time_point start;
  StepTimes times;
  for (int step = 1 - options.warmup; step <= options.steps; ++step) {
    if (step == 1) {
      start = Clock::now();
      context_.set_profile(profile);
    }
    std::vector<HostBatch> batches;
    for (std::int64_t i = 0; i < training.accumulate; ++i) batches.push_back(queue.next());
    epoch_batches = batches.front().epoch_batches;
    const RandomKey key{.seed = config_.seed,
                        .step = static_cast<std::uint64_t>(step + options.warmup)};
    const StepReport report = learner.step(batches, key, options.learning_rate);
    times.last_loss = report.loss / static_cast<double>(report.target_tokens);
    if (step == 1 - options.warmup) times.first_loss = times.last_loss;
    if (step > 0) tokens += report.tokens_processed;
  }
  context_.set_profile(nullptr);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  times.seconds_per_step = seconds / options.steps;
  times.target_tokens_per_second = static_cast<double>(tokens) / seconds;
  times.steps_per_epoch = (epoch_batches + training.accumulate - 1) / training.accumulate;
  times.total_steps = total_steps(training, epoch_batches);
  if (options.largest_batch) {
    const HostBatch largest = largest_batch(*order_);
    times.largest = {.sentences = std::ssize(largest.targets),
                     .rows = batch_rows(largest),
                     .fits = learner.fits(largest)};
  }
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
