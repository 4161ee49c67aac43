// The progress of a run: steps taken, speed and estimated time left.
#pragma once

#include <chrono>
#include <cstdint>

#include "nunchi/training/config/train_config.h"

namespace nunchi {

struct TrainingProgress {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;  // 0: unknown
  std::int64_t epoch = 0;        // from 0
  double loss = 0;               // per target token, mean since the last line of the log
  double learning_rate = 0;
  double gradient_norm = 0;
  // Counts the tokens that the model reads (see ObjectiveLoss) and the time spent waiting for data.
  double target_tokens_per_second = 0;
  double seconds_left = 0;  // below zero: unknown
};

// The number of steps until max_steps or max_epochs ends a run; 0 if neither is set. An estimate:
// it assumes `epoch_batches` micro-batches in every epoch, but epochs may differ a little.
std::int64_t total_steps(const TrainingOptions& limits, std::int64_t epoch_batches);

// The clock of a run, which may have started in an earlier process.
class RunClock {
 public:
  RunClock() = default;
  // Earlier processes took `steps` steps of the run in `seconds` seconds.
  RunClock(std::int64_t steps, double seconds) : earlier_steps_(steps), earlier_seconds_(seconds) {}

  void start();
  // Seconds that the run has taken in this and in earlier processes.
  double elapsed() const;

  // Speed is measured over a window of steps, from one line of the log to the next.
  void start_window();
  void add_tokens(std::int64_t tokens) { window_tokens_ += tokens; }
  double tokens_per_second() const;
  // Excludes the time since `from` from the speed: it was not spent on steps.
  void exclude_since(std::chrono::steady_clock::time_point from);

  // The estimated time left after `step` of `total` steps; below zero: unknown. `total` and
  // `max_minutes` may be 0 for no limit.
  double seconds_left(std::int64_t step, std::int64_t total, double max_minutes) const;

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point from);

  std::int64_t earlier_steps_ = 0;
  double earlier_seconds_ = 0;
  Clock::time_point start_time_, window_start_;
  std::int64_t window_tokens_ = 0;
};

}  // namespace nunchi
