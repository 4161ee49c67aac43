// How a trainer begins: fresh, or where a checkpoint left off.
#include <fmt/format.h>

#include <algorithm>

#include "nunchi/base/error.h"
#include "nunchi/data/content_hash.h"
#include "nunchi/training/config/config_changes.h"
#include "nunchi/training/trainer.h"

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

// " ('seed', 'training.max_steps')", or nothing when nobody can tell.
std::string changed_keys(const std::filesystem::path& checkpoint, const TrainConfig& config) {
  constexpr std::size_t kNamed = 8;
  const std::vector<ConfigChange> changes = config_changes(checkpoint, config);
  if (changes.empty()) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, changes.size()); ++i) {
    names += (i == 0 ? "'" : ", '") + changes[i].key + "'";
  }
  if (changes.size() > kNamed) names += fmt::format(" and {} more", changes.size() - kNamed);
  return " (" + names + ")";
}

// What can be done when the newest checkpoint cannot be read.
std::string way_out(const std::filesystem::path& checkpoints, const std::filesystem::path& newest) {
  const std::vector<std::int64_t> steps = checkpoint_steps(checkpoints);
  if (steps.size() < 2) return {};
  return fmt::format(" Remove {}, and the run is resumed at step {}.", newest.string(),
                     steps[steps.size() - 2]);
}

}  // namespace

Trainer::Trainer(TrainerParts parts, const TrainConfig& config, TrainerHooks hooks)
    : parts_(std::move(parts)),
      config_(config),
      hooks_(std::move(hooks)),
      schedule_(schedule_of(config)),
      learner_(parts_.model, parts_.objective, config.training.optimizer.adam) {
  check(schedule_);
  resume();
  state_.seed = config.seed;
  state_.config_digest = digest_of(config);
  state_.order_digest = fmt::format("{:016x}", parts_.order.fingerprint());
}

void Trainer::resume() {
  const std::filesystem::path checkpoint = parts_.folder.last_checkpoint();
  if (checkpoint.empty()) return;
  try {
    state_ = load_checkpoint(checkpoint, parts_.model, learner_.optimizer());
  } catch (const Error& error) {
    throw Error(error.what() + way_out(parts_.folder.checkpoints(), checkpoint));
  }
  saved_step_ = steps_before_ = state_.step;
  saved_ = true;
  elapsed_before_ = state_.elapsed_seconds;
  note(fmt::format("resuming at step {}", state_.step));
  if (state_.config_digest != digest_of(config_)) {
    note(fmt::format("the config is another than {} says{}; the run goes on with the new one",
                     (checkpoint / "config.yaml").string(), changed_keys(checkpoint, config_)));
  }
  if (state_.order_digest != fmt::format("{:016x}", parts_.order.fingerprint())) {
    note(fmt::format("the training data or their order have changed: epoch {} begins again",
                     state_.epoch + 1));
    state_.batch = 0;
  }
}

double Trainer::elapsed() const {
  return elapsed_before_ + std::chrono::duration<double>(Clock::now() - began_).count();
}

void Trainer::note(const std::string& sentence) const {
  if (hooks_.note) hooks_.note(sentence);
}

}  // namespace nunchi
