// The metrics of a run as it goes: log.jsonl for programs, TensorBoard's events for people.
//
// Each line of log.jsonl is a JSON object, {"step": 50, "train/loss": 4.2, …}: the step, then the
// values in the order given, with enough digits to read back the same double (null for values that
// are not finite). events/ has the same values as f32. On return from write() both are in the
// files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "nunchi/training/run/event_file.h"

namespace nunchi {

class MetricsLog {
 public:
  // Continues the logs of a run's folder after `step`, 0 for a new run. Lines of later steps, which
  // will be repeated, and a line truncated by a crash are removed; a new event file is started.
  // Throws Error with the system's reason.
  MetricsLog(const std::filesystem::path& folder, std::int64_t step);

  void write(std::int64_t step, std::span<const NamedValue> values);

 private:
  AppendFile lines_;
  EventFile events_;
};

}  // namespace nunchi
