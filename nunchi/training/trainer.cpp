#include "nunchi/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nunchi/base/error.h"
#include "nunchi/evaluation/perplexity.h"
#include "nunchi/training/run/average.h"
#include "nunchi/training/run/failed_step.h"

namespace nunchi {

TrainingEnd Trainer::run() {
  parts_.folder.start();
  began_ = window_began_ = Clock::now();
  log_.emplace(parts_.folder.path(), state_.step);
  BatchQueue queue(parts_.order, {state_.epoch, state_.batch});
  if (validation_due()) validate();  // a stop came in between
  while (!ended() && !asked_to_stop()) {
    ++state_.step;
    saved_ = false;
    const std::vector<HostBatch> batches = next_batches(queue);
    if (hooks_.before_step) hooks_.before_step(state_.step);
    const LearnedStep learned = learner_.step(batches, key(), rate());
    if (!learned.finite) skip(batches, learned);
    report(learned);
    if (validation_due()) validate();
    if (checkpoint_due() && !ended()) save();
  }
  if (!ended()) {
    save();
    return TrainingEnd::interrupted;
  }
  if (state_.last_validation != state_.step) validate();
  save();
  make_model_folder();
  const std::int64_t patience = config_.validation.patience;
  const bool early = patience > 0 && state_.validations_without_gain >= patience;
  return early ? TrainingEnd::early : TrainingEnd::finished;
}

bool Trainer::ended() const {
  const TrainingOptions& limits = config_.training;
  const std::int64_t patience = config_.validation.patience;
  return (limits.max_steps > 0 && state_.step >= limits.max_steps) ||
         (limits.max_epochs > 0 && state_.epoch >= limits.max_epochs) ||
         (limits.max_minutes > 0 && elapsed() >= 60 * limits.max_minutes) ||
         (patience > 0 && state_.validations_without_gain >= patience);
}

bool Trainer::asked_to_stop() const { return hooks_.stop != nullptr && hooks_.stop->load(); }

bool Trainer::validation_due() const {
  const std::int64_t every = config_.validation.every;
  return every > 0 && state_.step > 0 && state_.step % every == 0 &&
         state_.last_validation != state_.step;
}

bool Trainer::checkpoint_due() const {
  // What was validated is kept, so that the best is there to come back to.
  return state_.step % config_.checkpoints.every == 0 ||
         (hooks_.validate && state_.last_validation == state_.step);
}

std::vector<HostBatch> Trainer::next_batches(BatchQueue& queue) {
  std::vector<HostBatch> batches;
  for (std::int64_t i = 0; i < config_.training.accumulate; ++i) {
    const HostBatch& batch = batches.emplace_back(queue.next());
    const bool last = batch.number + 1 == batch.epoch_batches;
    state_.epoch = last ? batch.epoch + 1 : batch.epoch;
    state_.batch = last ? 0 : batch.number + 1;
    epoch_batches_ = batch.epoch_batches;
  }
  return batches;
}

RandomKey Trainer::key() const {
  return {.seed = state_.seed, .step = static_cast<std::uint64_t>(state_.step)};
}

double Trainer::rate() const { return learning_rate(schedule_, state_.step); }

void Trainer::skip(std::span<const HostBatch> batches, const LearnedStep& learned) {
  constexpr std::int64_t kMostInARow = 3;
  ++state_.skipped_steps;
  ++state_.skipped_in_a_row;
  const std::string operation = learner_.first_not_finite(batches, key());
  const std::filesystem::path saved =
      write_failed_step(parts_.folder.failed(), {.step = state_.step,
                                                 .seed = state_.seed,
                                                 .learned = learned,
                                                 .operation = operation,
                                                 .batches = batches});
  const std::string what = fmt::format(
      "step {}: the {} not finite: {}. The batch is in {}", state_.step,
      std::isfinite(learned.loss) ? "gradients are" : "loss is", operation, saved.string());
  if (state_.skipped_in_a_row >= kMostInARow) {
    throw Error(
        fmt::format("{}. {} steps in a row could not be used, so the run ends here; lower "
                    "training.schedule.learning_rate and {}.",
                    what, kMostInARow,
                    saved_step_ > 0 ? fmt::format("--resume from step {}", saved_step_)
                                    : "begin again: there is no checkpoint yet"));
  }
  note(what + "; the step is left out.");
}

void Trainer::report(const LearnedStep& learned) {
  if (learned.finite) {
    state_.skipped_in_a_row = 0;
    state_.window_loss += learned.loss;
    state_.window_tokens += learned.tokens;
  }
  window_tokens_ += learned.read;
  const auto now = Clock::now();
  const auto seconds = [&](Clock::time_point from) {
    return std::chrono::duration<double>(now - from).count();
  };
  TrainingProgress progress{
      .step = state_.step,
      .total_steps = config_.training.max_steps,
      .epoch = state_.epoch,
      .loss = state_.window_loss / static_cast<double>(state_.window_tokens),
      .learning_rate = rate(),
      .gradient_norm = learned.gradient_norm,
      .target_tokens_per_second = static_cast<double>(window_tokens_) / seconds(window_began_),
      .seconds_left = -1};
  const TrainingOptions& limits = config_.training;
  if (limits.max_epochs > 0) {
    const std::int64_t steps = limits.max_epochs * epoch_batches_ / limits.accumulate;
    progress.total_steps =
        limits.max_steps > 0 ? std::min(limits.max_steps, steps) : std::max(steps, state_.step);
  }
  if (progress.total_steps > 0) {
    const double a_step = seconds(began_) / static_cast<double>(state_.step - steps_before_);
    progress.seconds_left = a_step * static_cast<double>(progress.total_steps - state_.step);
  }
  if (limits.max_minutes > 0) {
    const double left = std::max(0.0, 60 * limits.max_minutes - elapsed());
    progress.seconds_left =
        progress.seconds_left < 0 ? left : std::min(progress.seconds_left, left);
  }
  if (hooks_.progress) hooks_.progress(progress);

  if (state_.step % config_.training.log_every != 0) return;
  log_->write(
      state_.step,
      std::vector<NamedValue>{{"train/loss", progress.loss},
                              {"train/learning_rate", progress.learning_rate},
                              {"train/gradient_norm", progress.gradient_norm},
                              {"train/target_tokens_per_second", progress.target_tokens_per_second},
                              {"train/epoch", static_cast<double>(state_.epoch)},
                              {"train/skipped_steps", static_cast<double>(state_.skipped_steps)},
                              {"train/elapsed_seconds", elapsed()}});
  state_.window_loss = 0;
  state_.window_tokens = window_tokens_ = 0;
  window_began_ = now;
}

void Trainer::validate() {
  if (!hooks_.validate) return;
  const auto began = Clock::now();
  const std::optional<ValidationScores> scores = hooks_.validate();
  // The time of validations is not the time of steps.
  window_began_ += Clock::now() - began;
  if (!scores) return;
  state_.last_validation = state_.step;
  saved_ = false;
  std::vector<NamedValue> values = {
      {"validation/loss", scores->loss},
      {"validation/perplexity", evaluation::perplexity(scores->loss, 1)}};
  if (scores->bleu) values.emplace_back("validation/bleu", *scores->bleu);
  if (scores->chrf) values.emplace_back("validation/chrf", *scores->chrf);
  if (scores->accuracy) values.emplace_back("validation/accuracy", *scores->accuracy);
  log_->write(state_.step, values);

  const ValidationMetric metric = config_.validation.metric;
  const bool lower_is_better = metric == ValidationMetric::loss;
  const double score = metric == ValidationMetric::bleu       ? scores->bleu.value()
                       : metric == ValidationMetric::chrf     ? scores->chrf.value()
                       : metric == ValidationMetric::accuracy ? scores->accuracy.value()
                                                              : scores->loss;
  const auto better = [&](double a, double b) { return lower_is_better ? a < b : a > b; };
  std::vector<StepScore>& best = state_.best;
  const bool gain = std::isfinite(score) && (best.empty() || better(score, best.front().score));
  state_.validations_without_gain = gain ? 0 : state_.validations_without_gain + 1;
  std::string words = fmt::format("step {}: validation loss {:.4f}", state_.step, scores->loss);
  if (scores->bleu) words += fmt::format(", BLEU {:.2f}", *scores->bleu);
  if (scores->chrf) words += fmt::format(", chrF {:.2f}", *scores->chrf);
  if (scores->accuracy) words += fmt::format(", accuracy {:.2f} %", 100 * *scores->accuracy);
  note(words + (gain ? ", the best so far" : ""));
  if (!std::isfinite(score)) return;
  // Before those that are worse: of equals the earlier stays ahead.
  const auto place = std::find_if(best.begin(), best.end(),
                                  [&](const StepScore& b) { return better(score, b.score); });
  best.insert(place, {state_.step, score});
  const auto kept = static_cast<std::size_t>(config_.checkpoints.keep_best);
  if (best.size() > kept) best.resize(kept);
}

void Trainer::save() {
  if (saved_) return;
  state_.elapsed_seconds = elapsed();
  write_checkpoint(parts_.folder.checkpoints(),
                   {parts_.model, learner_.optimizer(), state_, parts_.companions});
  saved_step_ = state_.step;
  saved_ = true;
  remove_old_checkpoints(parts_.folder.checkpoints(),
                         static_cast<std::size_t>(config_.checkpoints.keep_last), state_.best);
}

void Trainer::make_model_folder() const {
  const std::vector<std::int64_t> there = checkpoint_steps(parts_.folder.checkpoints());
  std::vector<std::int64_t> steps;
  for (const StepScore& best : state_.best) {
    // Somebody may have removed one by hand.
    if (std::binary_search(there.begin(), there.end(), best.step)) steps.push_back(best.step);
  }
  if (steps.empty()) steps.assign(there.rbegin(), there.rend());
  steps.resize(std::min(steps.size(), static_cast<std::size_t>(config_.checkpoints.average)));
  std::vector<std::filesystem::path> folders;
  for (const std::int64_t step : steps) {
    folders.push_back(checkpoint_path(parts_.folder.checkpoints(), step));
  }
  average_models(folders, parts_.folder.path());
}

}  // namespace nunchi
