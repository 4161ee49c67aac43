#include "nunchi/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/data/content_hash.h"
#include "nunchi/training/config/config_changes.h"
#include "nunchi/training/final_model.h"
#include "nunchi/training/restored_weights.h"
#include "nunchi/training/run/failed_step.h"

namespace nunchi {
namespace {

Schedule schedule_of(const TrainConfig& config) {
  Schedule schedule = config.training.schedule;
  schedule.total_steps = config.training.max_steps;
  schedule.width = config.model->model_width();
  return schedule;
}

std::string digest_of(const TrainConfig& config) {
  const std::string text = to_yaml(config);
  return ContentHash().update(std::as_bytes(std::span(text))).digest().hex();
}

std::string digest_of(const BatchOrder& order) {
  return fmt::format("{:016x}", order.fingerprint());
}

// The changed keys in parentheses: " ('seed', 'training.max_steps')". Empty if the checkpoint has
// no config to compare with.
std::string changed_keys(const std::filesystem::path& checkpoint, const TrainConfig& config) {
  constexpr std::size_t kMaxNames = 8;
  const std::vector<ConfigChange> changes = config_changes(checkpoint, config);
  if (changes.empty()) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(kMaxNames, changes.size()); ++i) {
    names += (i == 0 ? "'" : ", '") + changes[i].key + "'";
  }
  if (changes.size() > kMaxNames) names += fmt::format(" and {} more", changes.size() - kMaxNames);
  return " (" + names + ")";
}

// The options by which TensorBoard compares runs: those of the model, of training, the tokenizer's
// size and the seed.
std::vector<std::pair<std::string, std::string>> main_options(const TrainConfig& config) {
  auto options = config_values(config);
  std::erase_if(options, [](const auto& option) {
    const std::string& key = option.first;
    return !key.starts_with("model.") && !key.starts_with("training.") && key != "seed" &&
           key != "tokenizer.kind" && key != "tokenizer.vocabulary";
  });
  return options;
}

std::optional<NamedValue> final_score(const ModelChoice& choice) {
  if (!choice.metric || !choice.chosen.score) return std::nullopt;
  return NamedValue{"final/" + std::string(choice_name(kValidationMetrics, *choice.metric)),
                    *choice.chosen.score};
}

// Advice for the user whose newest checkpoint cannot be read; empty if there is no other one.
std::string advice(const std::filesystem::path& checkpoints, const std::filesystem::path& newest) {
  const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints);
  if (steps.size() < 2) return {};
  return fmt::format(" Remove {} to resume at step {}.", newest.string(), steps[steps.size() - 2]);
}

}  // namespace

Trainer::Trainer(TrainerParts parts, const TrainConfig& config, TrainerHooks hooks)
    : parts_(std::move(parts)),
      config_(config),
      hooks_(std::move(hooks)),
      schedule_(schedule_of(config)),
      learner_(parts_.model, parts_.objective,
               {.adam = config.training.optimizer.adam,
                .sum = config.training.gradient_sum,
                .note =
                    [this](const std::string& message) {
                      note(fmt::format("step {}: {}", state_.step, message));
                    }},
               parts_.communicator) {
  check(schedule_);
  check_worker_count(config.training.accumulate, config.training.gradient_sum,
                     parts_.communicator.size());
  if (leads() && config.training.ema > 0) {
    average_.emplace(parts_.model.parameters(), config.training.ema);
  }
  resume();
  state_.seed = config.seed;
  state_.config_digest = digest_of(config);
  state_.order_digest = digest_of(parts_.order);
}

void Trainer::resume() {
  if (leads()) load_last_checkpoint();
  share_state();
  learner_.set_max_rows(state_.max_rows);
  clock_ = RunClock(state_.step, state_.elapsed_seconds);
}

void Trainer::load_last_checkpoint() {
  const std::filesystem::path checkpoint = parts_.folder->last_checkpoint();
  if (checkpoint.empty()) return;
  try {
    state_ = load_checkpoint(checkpoint, parts_.model, learner_.optimizer(),
                             average_ ? &*average_ : nullptr);
  } catch (const Error& error) {
    throw Error(error.what() + advice(parts_.folder->checkpoints(), checkpoint));
  }
  saved_step_ = state_.step;
  saved_ = true;
  note(fmt::format("resuming at step {}", state_.step));
  if (state_.config_digest != digest_of(config_)) {
    note(fmt::format("the config differs from {}{}; the run continues with the new one",
                     (checkpoint / "config.yaml").string(), changed_keys(checkpoint, config_)));
  }
  if (state_.order_digest != digest_of(parts_.order)) {
    note(fmt::format("the training data or their order have changed: epoch {} starts again",
                     state_.epoch + 1));
    state_.batch = 0;
  }
}

// Every worker continues with the leader's weights, moments and state.
void Trainer::share_state() {
  Communicator& communicator = parts_.communicator;
  if (communicator.size() == 1) return;
  std::string text = to_json(state_);
  communicator.broadcast(text);
  state_ = trainer_state_from_json(text, "the leader's state");
  communicator.broadcast(parts_.model.parameters().weights());
  parts_.model.parameters().changed();
  AdamOptimizer& optimizer = learner_.optimizer();
  communicator.broadcast(optimizer.first_moment());
  communicator.broadcast(optimizer.second_moment());
  optimizer.set_steps(communicator.from_leader(optimizer.steps()));
}

TrainingEnd Trainer::run() {
  if (leads()) {
    parts_.folder->start();
    log_.emplace(parts_.folder->path(), state_.step);
    log_->write_options(main_options(config_));
  }
  clock_.start();
  BatchQueue queue(parts_.order, {state_.epoch, state_.batch});
  if (validation_due()) validate();  // the previous process was stopped during it
  Next next_action = next();
  while (next_action == Next::step) {
    const std::vector<HostBatch> batches = next_batches(queue);
    ++state_.step;
    saved_ = false;
    if (hooks_.before_step) hooks_.before_step(state_.step);
    const StepReport report = learner_.step(batches, key(), rate());
    state_.max_rows = learner_.max_rows();
    if (!report.finite) skip(batches, report);
    if (average_ && report.finite) average_->update(learner_.optimizer().steps());
    report_progress(report);
    if (validation_due()) validate();
    next_action = next();
    if (next_action == Next::step && checkpoint_due()) save();
  }
  if (next_action == Next::interrupt) {
    save();
    return TrainingEnd::interrupted;
  }
  if (state_.last_validation != state_.step) validate();
  save();
  const bool validated = !hooks_.validate || state_.last_validation == state_.step;
  if (!parts_.communicator.from_leader(validated) || !make_model_folder()) {
    return TrainingEnd::interrupted;
  }
  return out_of_patience() ? TrainingEnd::stopped_early : TrainingEnd::finished;
}

Trainer::Next Trainer::next() const {
  // Clocks differ between workers, so the leader decides.
  if (parts_.communicator.from_leader(limit_reached())) return Next::finish;
  const bool stop_requested = hooks_.stop != nullptr && hooks_.stop->load();
  return parts_.communicator.any(stop_requested) ? Next::interrupt : Next::step;
}

bool Trainer::limit_reached() const {
  const TrainingOptions& limits = config_.training;
  return (limits.max_steps > 0 && state_.step >= limits.max_steps) ||
         (limits.max_epochs > 0 && state_.epoch >= limits.max_epochs) ||
         (limits.max_minutes > 0 && clock_.elapsed() >= 60 * limits.max_minutes) ||
         out_of_patience();
}

bool Trainer::out_of_patience() const {
  const std::int64_t patience = config_.validation.patience;
  return patience > 0 && state_.validations_without_gain >= patience;
}

bool Trainer::validation_due() const {
  const std::int64_t every = config_.validation.every;
  return every > 0 && state_.step > 0 && state_.step % every == 0 &&
         state_.last_validation != state_.step;
}

bool Trainer::checkpoint_due() const {
  // A validated step gets a checkpoint, since it may be one of the best.
  return state_.step % config_.checkpoints.every == 0 ||
         (hooks_.validate && state_.last_validation == state_.step);
}

std::vector<HostBatch> Trainer::next_batches(BatchQueue& queue) {
  std::vector<HostBatch> batches;
  save_on_failure([&] {
    for (std::int64_t i = 0; i < config_.training.accumulate; ++i) batches.push_back(queue.next());
  });
  const HostBatch& batch = batches.back();
  const bool last = batch.number + 1 == batch.epoch_batches;
  state_.epoch = last ? batch.epoch + 1 : batch.epoch;
  state_.batch = last ? 0 : batch.number + 1;
  epoch_batches_ = batch.epoch_batches;
  return batches;
}

void Trainer::save_on_failure(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    if (state_.step == 0) throw;
    save();
    std::string message = error.what();
    while (message.ends_with('.')) message.pop_back();
    throw Error(fmt::format("{}; --resume continues at step {}.", message, state_.step));
  }
}

RandomKey Trainer::key() const {
  return {.seed = state_.seed, .step = static_cast<std::uint64_t>(state_.step)};
}

double Trainer::rate() const { return learning_rate(schedule_, state_.step); }

void Trainer::skip(std::span<const HostBatch> batches, const StepReport& report) {
  constexpr std::int64_t kMaxSkippedInARow = 3;
  ++state_.skipped_steps;
  ++state_.skipped_in_a_row;
  std::string reason = fmt::format("step {}: the {} not finite", state_.step,
                                   std::isfinite(report.loss) ? "gradients are" : "loss is");
  if (leads()) {
    const std::string operation = learner_.describe_first_non_finite(batches, key());
    const std::filesystem::path saved =
        write_failed_step(parts_.folder->failed(), {.step = state_.step,
                                                    .seed = state_.seed,
                                                    .report = report,
                                                    .operation = operation,
                                                    .batches = batches});
    reason += fmt::format(": {}. Its batches are in {}", operation, saved.string());
  }
  if (state_.skipped_in_a_row >= kMaxSkippedInARow) {
    throw Error(
        fmt::format("{}. {} steps in a row were skipped, so the run ends here; lower "
                    "training.schedule.learning_rate and {}.",
                    reason, kMaxSkippedInARow,
                    saved_step_ > 0 ? fmt::format("--resume from step {}", saved_step_)
                                    : "start again: there is no checkpoint yet"));
  }
  note(reason + "; the step is skipped.");
}

void Trainer::report_progress(const StepReport& report) {
  if (report.finite) {
    state_.skipped_in_a_row = 0;
    state_.window_loss += report.loss;
    state_.window_tokens += report.target_tokens;
  }
  clock_.add_tokens(report.tokens_processed);
  const TrainingProgress current = progress(report);
  if (leads() && hooks_.progress) hooks_.progress(current);
  if (state_.step % config_.training.log_every == 0) write_log(current);
}

TrainingProgress Trainer::progress(const StepReport& report) const {
  const TrainingOptions& limits = config_.training;
  std::int64_t total = total_steps(limits, epoch_batches_);
  // Epochs differ in length, so the estimate from this epoch may be too low.
  if (total > 0 && limits.max_steps == 0) total = std::max(total, state_.step);
  return {.step = state_.step,
          .total_steps = total,
          .epoch = state_.epoch,
          .loss = state_.window_loss / static_cast<double>(state_.window_tokens),
          .learning_rate = rate(),
          .gradient_norm = report.gradient_norm,
          .target_tokens_per_second = clock_.tokens_per_second(),
          .seconds_left = clock_.seconds_left(state_.step, total, limits.max_minutes)};
}

void Trainer::write_log(const TrainingProgress& progress) {
  if (leads()) {
    log_->write(state_.step,
                std::vector<NamedValue>{
                    {"train/loss", progress.loss},
                    {"train/learning_rate", progress.learning_rate},
                    {"train/gradient_norm", progress.gradient_norm},
                    {"train/target_tokens_per_second", progress.target_tokens_per_second},
                    {"train/epoch", static_cast<double>(state_.epoch)},
                    {"train/skipped_steps", static_cast<double>(state_.skipped_steps)},
                    {"train/elapsed_seconds", clock_.elapsed()}});
  }
  state_.window_loss = 0;
  state_.window_tokens = 0;
  clock_.start_window();
}

void Trainer::validate() {
  if (!hooks_.validate) return;
  const auto start = std::chrono::steady_clock::now();
  std::optional<ValidationScores> scores;
  save_on_failure([&] {
    if (leads()) scores = measure();
  });
  scores = parts_.communicator.from_leader(scores);
  clock_.exclude_since(start);
  if (!scores) return;
  state_.last_validation = state_.step;
  saved_ = false;
  const ValidationMetric metric = config_.validation.metric;
  const bool best = add_score(state_, score_of(*scores, metric), metric,
                              static_cast<std::size_t>(config_.checkpoints.keep_best));
  if (!leads()) return;
  log_->write(state_.step, log_values(*scores));
  if (hooks_.samples) log_->write_samples(state_.step, hooks_.samples());
  note(
      fmt::format("step {}: {}{}", state_.step, to_text(*scores), best ? ", the best so far" : ""));
}

std::optional<ValidationScores> Trainer::measure() {
  if (!average_) return hooks_.validate();
  const RestoredWeights restored(parts_.model.parameters());
  average_->copy_to(parts_.model.parameters());
  return hooks_.validate();
}

void Trainer::save() {
  if (saved_ || !leads()) return;
  state_.elapsed_seconds = clock_.elapsed();
  write_checkpoint(parts_.folder->checkpoints(),
                   {parts_.model, learner_.optimizer(), state_, parts_.write_companions,
                    average_ ? &*average_ : nullptr});
  saved_step_ = state_.step;
  saved_ = true;
  remove_old_checkpoints(parts_.folder->checkpoints(),
                         static_cast<std::size_t>(config_.checkpoints.keep_last), state_.best);
}

bool Trainer::make_model_folder() {
  bool made = true;
  if (leads()) {
    const RunFolder& folder = *parts_.folder;
    const std::optional<ModelChoice> choice =
        make_final_model({parts_.model, folder.path(), folder.checkpoints(), state_.best,
                          static_cast<std::size_t>(config_.checkpoints.average),
                          config_.validation.metric, hooks_.validate});
    made = choice.has_value();
    if (made) {
      folder.set_model(*choice);
      log_->write_end(state_.step, final_score(*choice));
      note("model: " + to_text(*choice) +
           (hooks_.validate ? "" : " (not validated: there is no data.validation)"));
    }
  }
  return parts_.communicator.from_leader(made);
}

void Trainer::note(const std::string& message) const {
  if (leads() && hooks_.note) hooks_.note(message);
}

}  // namespace nunchi
