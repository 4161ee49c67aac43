// Logs the metrics of a run: log.jsonl for programs, TensorBoard event files for people.
//
// Each line of log.jsonl is a JSON object, {"step": 50, "train/loss": 4.2, …}: the step, then the
// values in the given order, with enough digits to restore the same double (null for values that
// are not finite). events/ has the same values as f32. When write() returns, the values are in both
// files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "nunchi/training/run/event_file.h"

namespace nunchi {

class MetricsLog {
 public:
  // Continues the logs in a run's folder after `step`, which is 0 for a new run. Removes the lines
  // of later steps, which will be repeated, and a line that a crash truncated; starts a new event
  // file. Throws Error with the system's error message.
  MetricsLog(const std::filesystem::path& folder, std::int64_t step);

  void write(std::int64_t step, std::span<const NamedValue> values);

 private:
  AppendFile lines_;
  EventFile events_;
};

}  // namespace nunchi
